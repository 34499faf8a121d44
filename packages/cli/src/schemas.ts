/** The schemas that stores export. Loaded when asked for, with what the library has in this build. */
import { EXIT } from "./exit-codes.ts";
import { Failure, usageFailure } from "./failure.ts";
import { didYouMean } from "./parse/suggest.ts";

export interface SchemaNames {
  readonly schema?: string;
  readonly table?: string;
}

const STORES = ["postgres"] as const;

export async function schemaOf(store: string, names: SchemaNames): Promise<string> {
  if (!STORES.some((known) => known === store)) {
    const hint = didYouMean(store, STORES);
    throw usageFailure(
      `STORE must be one of ${STORES.join(", ")}, got ${JSON.stringify(store)}${hint}: other stores create what they need by themselves`,
    );
  }
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
