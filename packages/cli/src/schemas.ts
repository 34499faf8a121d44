/** The schemas that stores export. Loaded when asked for, with what the library has in this build. */
import { EXIT } from "./exit-codes.ts";
import { Failure } from "./failure.ts";

export interface SchemaNames {
  readonly schema?: string;
  readonly table?: string;
}

export async function postgresSql(names: SchemaNames): Promise<string> {
  const { postgresSchema } = await import("solehold/postgres").catch(absent);
  return postgresSchema(names);
}

function absent(error: unknown): never {
  const why = error instanceof Error ? error.message : String(error);
  throw new Failure(`the postgres store of this installation cannot be loaded: ${why}`, {
    exitCode: EXIT.error,
    code: "SCHEMA_UNAVAILABLE",
  });
}
