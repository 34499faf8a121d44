/** Runs a command while holding a lease, or several, or while leading. */
import { LeaseSet } from "solehold";
import type { Invocation } from "../command.ts";
import { keyOf, keysOf, withLeases } from "../connection.ts";
import { usageFailure } from "../failure.ts";
import { acrossPhases, interruptible, untilInterrupted } from "../interrupt.ts";
import { acquireAllWithNotice, acquireWithNotice } from "../run/acquire-with-notice.ts";
import { leadWithCommand, leadWithLines } from "../run/election.ts";
import { LeasedCommand } from "../run/leased-command.ts";
import { runOptions } from "../run/options.ts";
import { exitCodeOf, notifier } from "../run/result.ts";
import { approvalForAcquire } from "./approvals/load-approvals.ts";

/** An approval is for one grant; and a KEY that is released because another is taken would stay closed. */
const OF_ONE_LEASE = ["approvals", "at-least"];

export async function run(invocation: Invocation): Promise<number> {
  const { io, trailing, values } = invocation;
  const [key = "", ...others] = keysOf(invocation);
  for (const option of OF_ONE_LEASE)
    if (others.length > 0 && values[option] !== undefined)
      throw usageFailure(`--${option} is for one KEY: start one run in another, with one KEY each`);
  const { acquire, plan } = runOptions(invocation);
  return await withLeases(invocation, "process", async (connection) => {
    const approval = await approvalForAcquire(invocation, connection, key, acquire);
    const attempt = async (signal: AbortSignal): Promise<LeaseSet> =>
      others.length > 0
        ? acquireAllWithNotice(connection, [key, ...others], { ...acquire, signal }, invocation)
        : new LeaseSet([
            await acquireWithNotice(connection, key, { ...acquire, ...approval, signal }, invocation),
          ]);
    return await acrossPhases(io, async () => {
      const leased = new LeasedCommand({ io, plan, command: trailing, notify: notifier(invocation) });
      try {
        const held = await interruptible(io, (signal) => leased.acquire(signal, attempt));
        return exitCodeOf(await leased.run(held, connection.executor), trailing[0] ?? "");
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
