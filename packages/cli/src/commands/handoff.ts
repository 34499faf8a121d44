/** `solehold handoff`: stops holding, and lets only a named successor take over until a deadline. */
import { type Command, value } from "../command.ts";
import { CONNECTION_OPTIONS, KEY, OWNER_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "handoff",
  summary: "Give a lease to a named successor",
  usage: "KEY --to NAME --within DURATION [options]",
  positionals: KEY,
  options: {
    to: value("NAME", "the holder that may take it"),
    within: value("DURATION", "how long only that holder may; after that any may"),
    ...OWNER_OPTIONS,
    ...CONNECTION_OPTIONS,
  },
  examples: { "solehold handoff db/main --to replica-2 --within 30s": "a planned switch of the writer" },
  action: async () => (await import("../actions/lease-commands.ts")).handoff,
};
