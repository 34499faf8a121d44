/**
 * A process that is paused or suspended looks dead: its lease runs out and another takes it. It was suspected falsely.
 *
 * FalseSuspicionSafety: when it goes on it does not believe in that lease any more, not even for a moment, and whether or
 * not the next holder still has it. Asked where exclusion is.
 * FalseSuspicionRecovery: after the world has healed it is served like any other. Asked of processes that live to the end,
 * where `full/run.ts` asks all of them: a process that was suspected and is not served breaks this promise.
 */
import { keyId, recordFence } from "solehold/internal";
import { isGrant, type Oracle, type OracleContext } from "./oracle.ts";

export interface FalseSuspicionOracle extends Oracle {
  /** Whether this process ever lost a lease because it stood still. */
  wasSuspected(process: string): boolean;
}

export function falseSuspicion(context: OracleContext): FalseSuspicionOracle {
  const name = "false-suspicion-safety";
  /** Key and fence of the leases that were taken from such a holder, and who took them. */
  const taken = new Map<string, string>();
  const suspected = new Set<string>();
  /** Which process was granted which fence of which key, and when it last wrote that it has it. */
  const holders = new Map<string, { readonly process: string; readonly wroteMs: number }>();
  return {
    name,
    wasSuspected: (process) => suspected.has(process),
    onWrite: (write) => {
      const { before, after, by, key } = write;
      const id = keyId(key);
      const isProlonged = after !== null && after.renewals > (before?.renewals ?? 0);
      if (after !== null && (isGrant(write) || isProlonged))
        holders.set(`${id}@${recordFence(after)}`, { process: by, wroteMs: context.nowMs() });
      if (before?.state !== "held" || after === null || !isGrant(write)) return;
      const fence = recordFence(before);
      const holder = holders.get(`${id}@${fence}`);
      const machine = context.machineOf(holder?.process ?? "");
      if (holder === undefined || machine === null) return;
      if (!machine.frozen && machine.thawedAtMs < holder.wroteMs) return;
      taken.set(`${id}@${fence}`, `${by} with fence ${recordFence(after)}`);
      suspected.add(holder.process);
    },
    afterEvent: () => {
      if (!context.expectations.exclusive || taken.size === 0) return;
      for (const [id, believers] of context.believers) {
        for (const each of believers) {
          const next = taken.get(`${id}@${each.fence}`);
          if (next === undefined || each.frozen() || each.ended() || !each.believes()) continue;
          context.fail(name, `${each.who} goes on under fence ${each.fence} of ${id}, which went to ${next}`);
        }
      }
    },
  };
}
