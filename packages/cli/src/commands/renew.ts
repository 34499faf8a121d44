/** `solehold renew`: sets the lease's end to now + ttl. It never adds, and never brings an ended lease back. */
import type { Command } from "../command.ts";
import { CONNECTION_OPTIONS, KEY, OWNER_OPTIONS, TTL_OPTION } from "../options.ts";

export const command: Command = {
  name: "renew",
  summary: "Prolong a lease that you hold",
  usage: "KEY [options]",
  positionals: KEY,
  options: { ttl: TTL_OPTION, ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: ["Exit code 4 when the lease is over: expired, revoked or taken by another."],
  examples: { "SOLEHOLD_TOKEN=... solehold renew db/main --ttl 5m": "five more minutes from now" },
  action: async () => (await import("../actions/lease-commands.ts")).renew,
};
