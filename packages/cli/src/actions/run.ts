/** Runs a command while holding a lease. */
import type { Invocation } from "../command.ts";
import { keyOf, withLeases } from "../connection.ts";
import { acrossPhases, interruptible } from "../interrupt.ts";
import { acquireWithNotice } from "../run/acquire-with-notice.ts";
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
