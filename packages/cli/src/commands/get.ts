/** `solehold get`: all that anybody may know about one lease. */
import type { Command } from "../command.ts";
import { CONNECTION_OPTIONS, KEY } from "../options.ts";

export const command: Command = {
  name: "get",
  summary: "Show one lease",
  usage: "KEY [options]",
  positionals: KEY,
  options: CONNECTION_OPTIONS,
  notes: ["Exit code 1, and null with --json, when nothing was ever granted under the key."],
  examples: {
    "solehold get db/main": "who has it, since when, until when",
    "solehold get db/main --json | jq -r .fence": "its newest fence",
  },
  action: async () => (await import("../actions/get.ts")).get,
};
