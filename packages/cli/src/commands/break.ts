/** `solehold break`: an operator bounds the renewals of a lease, so that its holder has time to finish. */
import { type Command, value } from "../command.ts";
import { APPROVALS_OPTION, CONNECTION_OPTIONS, FENCE_OPTION, KEY } from "../options.ts";

export const command: Command = {
  name: "break",
  summary: "Make a holder give up its lease after a period (for operators)",
  usage: "KEY --period DURATION [options]",
  positionals: KEY,
  options: {
    period: value("DURATION", "no renewal reaches past this from now; 0 stops renewals at once"),
    fence: FENCE_OPTION,
    approvals: APPROVALS_OPTION,
    ...CONNECTION_OPTIONS,
  },
  notes: [
    "What the holder was already promised is never taken away: the lease ends at the later of the two.",
  ],
  examples: { "solehold break db/main --period 30s": "half a minute to wind down" },
  action: async () => (await import("../actions/lease-commands.ts")).breakLease,
};
