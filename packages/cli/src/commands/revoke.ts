/** `solehold revoke`: an operator ends the lease of a holder. */
import type { Command } from "../command.ts";
import { APPROVALS_OPTION, CONNECTION_OPTIONS, FENCE_OPTION, KEY } from "../options.ts";

export const command: Command = {
  name: "revoke",
  summary: "End a holder's lease now (for operators)",
  usage: "KEY [options]",
  positionals: KEY,
  options: { fence: FENCE_OPTION, approvals: APPROVALS_OPTION, ...CONNECTION_OPTIONS },
  notes: [
    `Its holder can neither use nor renew it from now on. Another gets it once the old holder can no longer
believe that it holds it: at the end of what it was last promised.`,
  ],
  examples: {
    "solehold revoke job/7": "whoever holds it",
    "solehold revoke job/7 --fence 42": "only if it is still that grant",
  },
  action: async () => (await import("../actions/lease-commands.ts")).revoke,
};
