/** `solehold resume`: after a takeover, says that the work was rebuilt, so that the lease may be used. */
import type { Command } from "../command.ts";
import { CONNECTION_OPTIONS, KEY, OWNER_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "resume",
  summary: "Say that work was rebuilt after a takeover: 'use' is denied before",
  usage: "KEY [options]",
  positionals: KEY,
  options: { ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: [
    "Whoever takes a lease from a holder that did not finish must rebuild from persisted state first; acquire and get say so.",
  ],
  examples: { "./rebuild.sh && solehold resume db/main": "then steps may run again" },
  action: async () => (await import("../actions/lease-commands.ts")).resume,
};
