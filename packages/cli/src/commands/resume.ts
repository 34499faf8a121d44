/** `solehold resume`: after a takeover, says that the work was rebuilt, so that the lease may be used. */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS, OWNER_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "resume",
  summary: "Say that work was rebuilt after a takeover: 'use' is denied before",
  usage: "KEY [options]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "none",
  options: { ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: [
    "Whoever takes a lease from a holder that did not finish must rebuild from persisted state first; acquire and get say so.",
  ],
  examples: [{ line: "./rebuild.sh && solehold resume db/main", what: "then steps may run again" }],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { actAsHolder } = await import("../holder-actions.ts");
  return await actAsHolder(invocation, {
    send: (executor, owner) => executor.execute({ ...owner, op: "resume" }),
    say: (name) => `${name} may be used again`,
  });
}
