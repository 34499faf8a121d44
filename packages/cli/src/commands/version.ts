/** `solehold version`. */
import type { Command } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "version",
  summary: "Show the version",
  usage: "[--json]",
  options: COMMON_OPTIONS,
  examples: { "solehold version --json": "with that of Node and the platform" },
  action: async () => (await import("../actions/version.ts")).version,
};
