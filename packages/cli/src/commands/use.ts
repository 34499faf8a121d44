/** `solehold use`: asks whether the lease may be used now, for this purpose. It never prolongs it. */
import type { Command, Invocation } from "../command.ts";
import { CONNECTION_OPTIONS, OWNER_OPTIONS, PURPOSE_OPTION } from "../options.ts";

export const command: Command = {
  name: "use",
  summary: "Ask whether a lease may be used now, for a purpose",
  usage: "KEY [options]",
  positionals: [{ name: "KEY", presence: "required" }],
  trailing: "none",
  options: { purpose: PURPOSE_OPTION, ...OWNER_OPTIONS, ...CONNECTION_OPTIONS },
  notes: ["Exit code 0: yes. 4: the lease is over. 1: it is yours, but not for this purpose."],
  examples: [
    { line: "solehold use db/main --purpose StateWrite && ./write-state.sh", what: "check before a step" },
  ],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { actAsHolder } = await import("../holder-actions.ts");
  const { purposeOption } = await import("../values.ts");
  const { shortDuration } = await import("../text/duration.ts");
  const purpose = purposeOption(invocation) ?? "Operation";
  return await actAsHolder(invocation, {
    send: (executor, owner) => executor.execute({ op: "use", ...owner, purpose }),
    say: (name, { validForMs }) =>
      `${name} may be used for ${purpose}, for another ${shortDuration(validForMs)}`,
  });
}
