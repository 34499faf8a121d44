/** `solehold help`: the commands, or one of them in full. */
import type { Command } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "help",
  summary: "Show this, or the help of a command",
  usage: "[COMMAND]",
  positionals: [{ name: "COMMAND", presence: "optional" }],
  options: COMMON_OPTIONS,
  examples: { "solehold help run": "the same as solehold run --help" },
  action: async () => (await import("../actions/help.ts")).help,
};
