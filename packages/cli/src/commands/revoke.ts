/** `solehold revoke`: an operator ends somebody's lease. */
import type { Command, Invocation } from "../command.ts";
import { APPROVALS_OPTION, CONNECTION_OPTIONS, FENCE_OPTION } from "../options.ts";

export const command: Command = {
  name: "revoke",
  summary: "End somebody's lease now (for operators)",
  usage: "KEY [options]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "none",
  options: { fence: FENCE_OPTION, approvals: APPROVALS_OPTION, ...CONNECTION_OPTIONS },
  notes: [
    `Its holder can neither use nor renew it from now on. Another gets it once the old holder can no longer
believe that it holds it: at the end of what it was last promised.`,
  ],
  examples: [
    { line: "solehold revoke job/7", what: "whoever holds it" },
    { line: "solehold revoke job/7 --fence 42", what: "only if it is still that grant" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { actAsOperator } = await import("../operator-actions.ts");
  const { shortDuration } = await import("../text/duration.ts");
  return await actAsOperator(invocation, {
    asks: { action: "revoke" },
    send: (executor, target) => executor.execute({ ...target, op: "revoke" }),
    say: (name, { validForMs, decision }) => {
      const until = `${decision.lease.holder} may still believe in it for ${shortDuration(validForMs)}`;
      return validForMs > 0 ? `${name} is revoked; ${until}` : `${name} is revoked`;
    },
  });
}
