/** `solehold release`: gives a lease back. A second release of the same grant is fine. */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS, OWNER_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "release",
  summary: "Give a lease back",
  usage: "KEY [options]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "none",
  options: { ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: ["Exit code 4 when it was no longer yours. A lease that another has by now is never touched."],
  examples: [
    { line: "SOLEHOLD_TOKEN=... solehold release db/main", what: "let the next one have it at once" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { actAsHolder } = await import("../holder-actions.ts");
  return await actAsHolder(invocation, {
    send: (executor, owner) => executor.execute({ ...owner, op: "release" }),
    say: (name) => `${name} is released`,
  });
}
