/**
 * The audit equals what happened: every attempt that was answered is in it exactly once, with the outcome
 * that its caller was told; and every grant that the store took is in the trail of the process that asked
 * for it, as applied or as unknown.
 */
import { formatFence, keyId, recordFence } from "../../core/index.ts";
import type { AuditEntry } from "../../service/index.ts";
import { isGrant, type Oracle, type Scene } from "./oracle.ts";

export interface AuditedProcess {
  readonly name: string;
  readonly alive: boolean;
  readonly entries: readonly AuditEntry[];
  readonly answered: readonly { readonly traceId: string; readonly outcome: { readonly kind: string } }[];
}

interface TakenGrant {
  readonly by: string;
  readonly key: string;
  readonly generation: bigint;
  readonly fence: string;
}

export function audit(scene: Scene, processes: () => readonly AuditedProcess[]): Oracle {
  const name = "audit";
  const grants: TakenGrant[] = [];
  return {
    name,
    onWrite: (write) => {
      const { after, by } = write;
      if (after === null || !isGrant(write) || after.key.name.startsWith("$")) return;
      // Servers hold leases of their own, beside their service.
      if (!scene.keys.some(({ tenant }) => tenant === after.key.tenant)) return;
      const { generation } = after;
      grants.push({ by, key: keyId(after.key), generation, fence: formatFence(recordFence(after)) });
    },
    atEnd: () => {
      for (const process of processes()) {
        const attempts = process.entries.filter((entry) => entry.action !== "expire");
        // Whoever was never told cannot have written it down; the attempt is there as it ended for its caller.
        const lost = new Set(scene.lostEffects().map((effect) => `${effect.keyId}@${effect.generation}`));
        const problem =
          missing(process, attempts) ??
          untold(
            process,
            attempts,
            grants.filter(({ key, generation }) => !lost.has(`${key}@${generation}`)),
          );
        if (problem !== null) scene.fail(name, problem);
      }
    },
  };
}

function missing(process: AuditedProcess, attempts: readonly AuditEntry[]): string | null {
  const byTrace = new Map<string, AuditEntry[]>();
  for (const entry of attempts) byTrace.set(entry.traceId, [...(byTrace.get(entry.traceId) ?? []), entry]);
  // Who waits in a server's line makes several attempts under one trace.
  const answers = new Map<string, string[]>();
  for (const { traceId, outcome } of process.answered)
    answers.set(traceId, [...(answers.get(traceId) ?? []), outcome.kind]);
  for (const [traceId, kinds] of answers) {
    const entries = byTrace.get(traceId) ?? [];
    const unfinished = process.alive ? 0 : 1;
    if (entries.length < kinds.length || entries.length > kinds.length + unfinished)
      return `attempt ${traceId} is in the audit ${entries.length} times, answered ${kinds.length} times`;
    const untold = kinds.findIndex((kind, index) => !fits(kind, entries[index]?.outcome));
    if (untold >= 0)
      return `attempt ${traceId} ended ${kinds[untold]}, and the audit says ${entries[untold]?.outcome}`;
  }
  return null;
}

function fits(kind: string, told: string | undefined): boolean {
  return kind === "unsettled" ? told === "unknown" || told === "none" : told === kind;
}

function untold(
  process: AuditedProcess,
  attempts: readonly AuditEntry[],
  grants: readonly TakenGrant[],
): string | null {
  if (!process.alive) return null;
  for (const { by, key, fence } of grants) {
    if (by !== process.name) continue;
    const told = attempts.some(
      (entry) =>
        entry.action === "grant" &&
        `${entry.tenant}/${entry.key}` === key &&
        (entry.fence === fence || entry.outcome === "unknown"),
    );
    if (!told) return `the grant of ${key} with fence ${fence} is not in the audit of ${by}`;
  }
  return null;
}
