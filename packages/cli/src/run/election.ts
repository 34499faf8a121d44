/** One term of leadership after another: with a command for each, or with lines on stdout. */
import { formatFence, type Lease, LeaseSet } from "solehold";
import type { Invocation } from "../command.ts";
import type { Connection } from "../connection.ts";
import { escapeControls } from "../format/terminal.ts";
import { acrossPhases, Interrupted, interruptible } from "../interrupt.ts";
import { acquireWithNotice } from "./acquire-with-notice.ts";
import { LeasedCommand } from "./leased-command.ts";
import type { RunOptions } from "./options.ts";
import { exitCodeOf, notifier } from "./result.ts";
import type { CommandResult } from "./supervisor-handle.ts";

export interface Election {
  readonly connection: Connection;
  readonly key: string;
  readonly options: RunOptions;
  readonly invocation: Invocation;
}

/** Waits until this process leads. Throws the signal's reason when it aborts. */
function campaign(election: Election, signal: AbortSignal): Promise<Lease> {
  const { connection, key, options, invocation } = election;
  return acquireWithNotice(connection, key, { ...options.acquire, wait: "forever", signal }, invocation);
}

/**
 * The exit code of the command when it ended by itself. Throws Interrupted when a signal asks for the end while
 * campaigning, or at any moment of a term that is then lost: it does not campaign for a further term.
 */
export async function leadWithCommand(election: Election): Promise<number> {
  const { connection, options, invocation } = election;
  const { io, trailing: command } = invocation;
  return await acrossPhases(io, async () => {
    for (;;) {
      const leased = new LeasedCommand({ io, plan: options.plan, command, notify: notifier(invocation) });
      try {
        const lease = await interruptible(io, (signal) =>
          leased.acquire(signal, () => campaign(election, signal)),
        );
        const result = await leased.run(new LeaseSet([lease]), connection.executor);
        if (!wasLost(result)) return exitCodeOf(result, command[0] ?? "");
        if (leased.endRequestedBy !== null) throw new Interrupted(leased.endRequestedBy);
      } finally {
        leased.stop();
      }
    }
  });
}

function wasLost(result: CommandResult): boolean {
  if (result.kind === "ended") return result.stoppedBecause !== null;
  return result.kind === "not-started" && result.code === "LATE";
}

/** Until it is interrupted: throws Interrupted after it has released the current term. */
export async function leadWithLines(election: Election): Promise<number> {
  return await interruptible(election.invocation.io, async (signal) => {
    for (;;) {
      const lease = await campaign(election, signal);
      try {
        printTerm(election, "elected", lease);
        await termOver(lease, signal);
        printTerm(election, signal.aborted ? "resigned" : "lost", lease);
      } finally {
        await lease.release();
      }
      signal.throwIfAborted();
    }
  });
}

function printTerm(
  { invocation: { io, flags }, key }: Election,
  event: "elected" | "lost" | "resigned",
  lease: Lease,
): void {
  const { fence, holder, lossReason } = lease;
  if (flags.has("json")) {
    const line = { event, key, holder, fence: formatFence(fence), reason: lossReason };
    io.stdout.write(`${JSON.stringify(line)}\n`);
    return;
  }
  const reason = lossReason === null ? "" : ` (${lossReason})`;
  io.stdout.write(`${escapeControls(`${event}  ${key}  fence ${fence}  ${holder}${reason}`)}\n`);
}

function termOver(lease: Lease, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const either = AbortSignal.any([lease.signal, signal]);
    if (either.aborted) resolve();
    else either.addEventListener("abort", () => resolve(), { once: true });
  });
}
