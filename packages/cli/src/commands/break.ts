/** `solehold break`: an operator asks for a lease back, and gives its holder time to finish. */
import type { Command, Invocation } from "../command.ts";
import { APPROVALS_OPTION, CONNECTION_OPTIONS, FENCE_OPTION } from "../options.ts";

export const command: Command = {
  name: "break",
  summary: "Ask for somebody's lease back after a period (for operators)",
  usage: "KEY --period DURATION [options]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "none",
  options: {
    period: {
      type: "value",
      placeholder: "DURATION",
      help: "no renewal reaches past this from now; 0 stops renewals at once",
    },
    fence: FENCE_OPTION,
    approvals: APPROVALS_OPTION,
    ...CONNECTION_OPTIONS,
  },
  notes: [
    "What the holder was already promised is never taken away: the lease ends at the later of the two.",
  ],
  examples: [{ line: "solehold break db/main --period 30s", what: "half a minute to wind down" }],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { actAsOperator } = await import("../operator-actions.ts");
  const { requiredDuration } = await import("../values.ts");
  const { shortDuration } = await import("../text/duration.ts");
  const periodMs = requiredDuration(invocation, "period", 0);
  return await actAsOperator(invocation, {
    asks: { action: "break", ttlMs: periodMs },
    send: (executor, target) => executor.execute({ op: "break", ...target, periodMs }),
    say: (name, { decision }) =>
      `${name} ends within ${shortDuration(periodMs)}, or when what ${decision.lease.holder} was promised ends`,
  });
}
