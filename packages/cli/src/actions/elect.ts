/** Stands for election for as long as it runs, optionally with a command for each term. */
import type { Invocation } from "../command.ts";
import { keyOf, withLeases } from "../connection.ts";
import { untilInterrupted } from "../interrupt.ts";
import { leadWithCommand, leadWithLines } from "../run/election.ts";
import { runOptions } from "../run/options.ts";

export async function elect(invocation: Invocation): Promise<number> {
  const key = keyOf(invocation);
  const options = runOptions(invocation);
  return await withLeases(invocation, "process", async (connection) => {
    const election = { connection, key, options, invocation };
    const lead = invocation.trailing.length === 0 ? leadWithLines : leadWithCommand;
    return await untilInterrupted(() => lead(election));
  });
}
