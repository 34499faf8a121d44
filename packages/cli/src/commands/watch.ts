/** `solehold watch`: one line per change. */
import { type Command, flag, value } from "../command.ts";
import { CONNECTION_OPTIONS, PREFIX } from "../options.ts";

export const command: Command = {
  name: "watch",
  summary: "Print a line for every change of a lease",
  usage: "[PREFIX] [options]",
  positionals: PREFIX,
  options: {
    renewals: flag("also renewals, which are many"),
    every: value("DURATION", "how often to look where the store cannot announce changes (default 1s)"),
    ...CONNECTION_OPTIONS,
  },
  notes: [
    `What is held at the start comes first. Changes that follow each other faster than the store tells, or
than --every, may show as one.`,
  ],
  examples: {
    "solehold watch job/": "until Ctrl-C",
    "solehold watch --json | jq -c '[.event, .key, .holder]'": "for a script",
  },
  action: async () => (await import("../actions/watch.ts")).watch,
};
