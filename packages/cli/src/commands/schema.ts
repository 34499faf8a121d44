/** `solehold schema`: what a store needs to be created before it can be used, for those who create it by hand. */
import type { Command, Invocation } from "../command.ts";
import { COMMON_OPTIONS } from "../options.ts";

export const command: Command = {
  name: "schema",
  summary: "Print a store's schema, to create it by hand",
  usage: "[STORE] [options]",
  positionals: [{ name: "STORE", presence: "optional", choices: ["postgres"] }],
  trailing: "none",
  options: {
    schema: { type: "value", placeholder: "NAME", help: "the schema in the database (default solehold)" },
    table: { type: "value", placeholder: "NAME", help: "the table (default work_order_leases)" },
    ...COMMON_OPTIONS,
  },
  notes: ["STORE is postgres, which is the default. Other stores create what they need by themselves."],
  examples: [{ line: "solehold schema postgres | psql app", what: "with the rights of an administrator" }],
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { postgresSql } = await import("../schemas.ts");
  const { printAnswer } = await import("../text/print.ts");
  const { positionals, values } = invocation;
  const [store = "postgres"] = positionals;
  const { schema, table } = values;
  const names = { ...(schema === undefined ? {} : { schema }), ...(table === undefined ? {} : { table }) };
  const sql = await postgresSql(names);
  printAnswer(invocation, { document: () => ({ store, sql }), lines: () => [sql.trimEnd()] });
  return 0;
}
