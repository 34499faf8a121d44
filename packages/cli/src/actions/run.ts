/** Runs a command while holding a lease, or while leading. */
import type { Invocation } from "../command.ts";
import { keyOf, withLeases } from "../connection.ts";
import { acrossPhases, interruptible, untilInterrupted } from "../interrupt.ts";
import { acquireWithNotice } from "../run/acquire-with-notice.ts";
import { leadWithCommand, leadWithLines } from "../run/election.ts";
import { LeasedCommand } from "../run/leased-command.ts";
import { runOptions } from "../run/options.ts";
import { exitCodeOf, notifier } from "../run/result.ts";
import { approvalForAcquire } from "./approvals/load-approvals.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { io, trailing } = invocation;
  const key = keyOf(invocation);
  const { acquire, plan } = runOptions(invocation);
  return await withLeases(invocation, "process", async (connection) => {
    const approval = await approvalForAcquire(invocation, connection, key, acquire);
    return await acrossPhases(io, async () => {
      const leased = new LeasedCommand({ io, plan, command: trailing, notify: notifier(invocation, key) });
      try {
        const attempt = (signal: AbortSignal) =>
          acquireWithNotice(connection, key, { ...acquire, ...approval, signal }, invocation);
        const lease = await interruptible(io, (signal) => leased.acquire(signal, attempt));
        return exitCodeOf(await leased.run(lease, connection.executor), trailing[0] ?? "");
      } finally {
        leased.stop();
      }
    });
  });
}

/** Stands for election for as long as it runs, optionally with a command for each term. */
export async function elect(invocation: Invocation): Promise<number> {
  const key = keyOf(invocation);
  const options = runOptions(invocation);
  return await withLeases(invocation, "process", async (connection) => {
    const election = { connection, key, options, invocation };
    const lead = invocation.trailing.length === 0 ? leadWithLines : leadWithCommand;
    return await untilInterrupted(() => lead(election));
  });
}
