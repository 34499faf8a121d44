/** `solehold release`: ends a lease before its time. A second release of the same grant is fine. */
import type { Command } from "../command.ts";
import { CONNECTION_OPTIONS, KEY, OWNER_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "release",
  summary: "Release a lease that you hold",
  usage: "KEY [options]",
  positionals: KEY,
  options: { ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: ["Exit code 4 when it was no longer yours. A lease that another has by now is never touched."],
  examples: { "SOLEHOLD_TOKEN=... solehold release db/main": "let the next one have it at once" },
  action: async () => (await import("../actions/lease-commands.ts")).release,
};
