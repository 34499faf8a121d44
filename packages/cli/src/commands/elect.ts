/** `solehold elect`: stands for election for as long as it runs, optionally with a command for each term. */
import type { Command } from "../command.ts";
import { CONNECTION_OPTIONS, KEY } from "../options.ts";
import { command as runCommand } from "./run.ts";

/** Waiting is what an election is; and an approval works once, so it cannot carry a second term. */
const { wait: _wait, approvals: _approvals, ...runOptions } = runCommand.options;

export const command: Command = {
  name: "elect",
  summary: "Stand for election, and run a command while leading",
  usage: "KEY [options] [-- CMD [ARG...]]",
  positionals: KEY,
  trailing: "optional",
  options: { ...runOptions, ...CONNECTION_OPTIONS },
  notes: [
    `With a command: it runs while this process leads, as under 'solehold run'; when the lease is lost it is
stopped, and this process campaigns for the next term; when it ends by itself, its exit code is the
result. Ctrl-C and SIGTERM are passed on to it, and end the campaign.
Without a command: prints a line when a term begins and when it ends, until Ctrl-C.`,
  ],
  examples: {
    "solehold elect scheduler --ttl 15s -- ./scheduler": "one scheduler among many replicas",
    "solehold elect scheduler --json": "follow one's own terms in a script",
  },
  action: async () => (await import("../actions/elect.ts")).elect,
};
