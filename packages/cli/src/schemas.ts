/** The schemas that stores export. Loaded when asked for: a store's module may need its own client. */
import { EXIT } from "./exit-codes.ts";
import { Failure, usageFailure } from "./failure.ts";
import { didYouMean } from "./parse/suggest.ts";

const STORES = ["postgres"] as const;

export async function schemaOf(store: string): Promise<string> {
  if (!STORES.some((known) => known === store)) {
    const hint = didYouMean(store, STORES);
    throw usageFailure(
      `STORE must be one of ${STORES.join(", ")}, got ${JSON.stringify(store)}${hint}: other stores create what they need by themselves`,
    );
  }
  const exported = await loadExport("solehold/postgres", "postgresSchema");
  const schema = typeof exported === "function" ? (exported as () => unknown)() : exported;
  if (typeof schema === "string") return schema;
  throw absent(store);
}

/** Undefined when this build of the library has no such module or export. */
async function loadExport(module: string, name: string): Promise<unknown> {
  try {
    const loaded = (await import(module)) as Readonly<Record<string, unknown>>;
    return loaded[name];
  } catch {
    return undefined;
  }
}

function absent(store: string): Failure {
  return new Failure(`this build of solehold has no ${store} store, so there is no schema to print`, {
    exitCode: EXIT.error,
    code: "SCHEMA_UNAVAILABLE",
    facts: { store },
  });
}
