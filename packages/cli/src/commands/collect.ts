/** `solehold collect`: deletes the records of leases that ended long ago. */
import type { Command } from "../command.ts";
import { CONNECTION_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "collect",
  summary: "Delete the records of leases that ended more than a day ago",
  usage: "[options]",
  options: CONNECTION_OPTIONS,
  notes: [
    "A server does this by itself every hour (serve --collect-every). Without a server, run it now and then: a record stays in the store after its lease has ended.",
    "Nothing that is held or ended less than a day ago is touched, fences keep growing, and it may run while leases are used. One tenant at a time.",
  ],
  examples: {
    "solehold collect --store redis://localhost:6379": "the default tenant",
    "solehold collect --tenant ci --json": "another one, for a script",
  },
  action: async () => (await import("../actions/maintenance.ts")).collect,
};
