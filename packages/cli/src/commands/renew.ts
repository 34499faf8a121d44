/** `solehold renew`: sets the lease's end to now + ttl. It never adds, and never brings an ended lease back. */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS, OWNER_OPTIONS, TTL_OPTION } from "../options.ts";

export const command: Command = {
  name: "renew",
  summary: "Prolong a lease that you hold",
  usage: "KEY [options]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "none",
  options: { ttl: TTL_OPTION, ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: ["Exit code 4 when the lease is over: expired, revoked or taken by another."],
  examples: [
    { line: "SOLEHOLD_TOKEN=... solehold renew db/main --ttl 5m", what: "five more minutes from now" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { actAsHolder } = await import("../holder-actions.ts");
  const { durationOption } = await import("../values.ts");
  const { shortDuration } = await import("../text/duration.ts");
  const ttlMs = durationOption(invocation, "ttl", 1);
  return await actAsHolder(invocation, {
    send: (executor, owner) =>
      executor.execute({ op: "renew", ...owner, ...(ttlMs === null ? {} : { ttlMs }) }),
    say: (name, { validForMs }) => `${name} is renewed for ${shortDuration(validForMs)}`,
  });
}
