/** The schema that a store needs, for administrators who create it by hand. */
import { given } from "solehold/internal";
import { postgresSchema } from "solehold/postgres";
import type { Invocation } from "../command.ts";
import { EXIT } from "../failure.ts";
import { printAnswer } from "../format/answer.ts";

export async function schema(invocation: Invocation): Promise<number> {
  const { positionals, values } = invocation;
  const [store = "postgres"] = positionals;
  const sql = postgresSchema(given({ schema: values.schema, table: values.table }));
  printAnswer(invocation, { document: () => ({ store, sql }), lines: () => sql.trimEnd().split("\n") });
  return EXIT.ok;
}
