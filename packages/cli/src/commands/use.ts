/** `solehold use`: asks whether the lease may be used now, for this purpose. It never prolongs it. */
import type { Command } from "../command.ts";
import { CONNECTION_OPTIONS, KEY, OWNER_OPTIONS, PURPOSE_OPTION } from "../options.ts";

export const command: Command = {
  name: "use",
  summary: "Ask whether a lease may be used now, for a purpose",
  usage: "KEY [options]",
  positionals: KEY,
  options: { purpose: PURPOSE_OPTION, ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: ["Exit code 0: yes. 4: the lease is over. 1: it is yours, but not for this purpose."],
  examples: { "solehold use db/main --purpose StateWrite && ./write-state.sh": "check before a step" },
  action: async () => (await import("../actions/lease-commands.ts")).use,
};
