/** `solehold schema`: what a store needs to be created before it can be used, for those who create it by hand. */
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "schema",
  summary: "Print a store's schema, to create it by hand",
  usage: "[STORE] [--json]",
  positionals: [{ name: "STORE", presence: "optional" }],
  trailing: "none",
  options: COMMON_OPTIONS,
  notes: ["STORE is postgres, which is the default. Other stores create what they need by themselves."],
  examples: [{ line: "solehold schema postgres | psql app", what: "with the rights of an administrator" }],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { schemaOf } = await import("../schemas.ts");
  const { printAnswer } = await import("../text/print.ts");
  const [store = "postgres"] = invocation.positionals;
  const sql = await schemaOf(store);
  printAnswer(invocation, { document: () => ({ store, sql }), lines: () => [sql.trimEnd()] });
  return 0;
}
