/** `solehold handoff`: stops holding, and lets only a named successor take over until a deadline. */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS, OWNER_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "handoff",
  summary: "Give a lease to a named successor",
  usage: "KEY --to NAME --within DURATION [options]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "none",
  options: {
    to: { type: "value", placeholder: "NAME", help: "the holder that may take it" },
    within: {
      type: "value",
      placeholder: "DURATION",
      help: "how long nobody else may; after that anybody may",
    },
    ...OWNER_OPTIONS,
    ...CONNECTION_OPTIONS,
  },
  examples: [
    { line: "solehold handoff db/main --to replica-2 --within 30s", what: "a planned switch of the writer" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { actAsHolder } = await import("../holder-actions.ts");
  const { requiredDuration, requiredOption } = await import("../values.ts");
  const { shortDuration } = await import("../text/duration.ts");
  const successor = requiredOption(
    invocation,
    "to",
    "name the holder that may take it, as in --to replica-2",
  );
  const withinMs = requiredDuration(invocation, "within", 1);
  return await actAsHolder(invocation, {
    send: (executor, owner) => executor.execute({ op: "handoff", ...owner, successor, withinMs }),
    say: (name) => `${name} is reserved for ${successor}, for ${shortDuration(withinMs)}`,
  });
}
