/** `solehold elect`: stands for election for as long as it runs, optionally with a command for each term. */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS } from "../options.ts";
import { command as runCommand } from "./run.ts";

/** Waiting is what an election is; and an approval works once, so it cannot carry a second term. */
const { wait: _wait, approvals: _approvals, ...runOptions } = runCommand.options;

export const command: Command = {
  name: "elect",
  summary: "Stand for election, and run a command while leading",
  usage: "KEY [options] [-- CMD [ARG...]]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "optional",
  options: { ...runOptions, ...CONNECTION_OPTIONS },
  notes: [
    `With a command: it runs while this process leads, as under 'solehold run'; when the lease is lost it is
stopped, and the next term is campaigned for; when it ends by itself, its exit code is the result.
Ctrl-C and SIGTERM are passed on to it, and no further term is campaigned for.
Without a command: prints a line when a term begins and when it ends, until Ctrl-C.`,
  ],
  examples: [
    { line: "solehold elect scheduler --ttl 15s -- ./scheduler", what: "one scheduler among many replicas" },
    { line: "solehold elect scheduler --json", what: "follow one's own terms in a script" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { io, trailing } = invocation;
  const { keyOf, withLeases } = await import("../connection.ts");
  const { runOptions: readOptions } = await import("../run/options.ts");
  const { leadWithCommand, leadWithLines } = await import("../run/election.ts");
  const { Interrupted } = await import("../interrupt.ts");
  const key = keyOf(invocation);
  const options = readOptions(invocation);
  const format = invocation.flags.has("json") ? "json" : "text";
  return await withLeases(invocation, "process", async (leases) => {
    const election = { leases, key, options, io, format } as const;
    try {
      return trailing.length === 0
        ? await leadWithLines(election)
        : await leadWithCommand(election, trailing);
    } catch (error) {
      if (error instanceof Interrupted) return error.details.exitCode;
      throw error;
    }
  });
}
