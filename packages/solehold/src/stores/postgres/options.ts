/** How to open a store on PostgreSQL. Every value is checked, and a bad one is named with its fix. */
import { type Env, realEnv } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import type { PgPool, PostgresJsClient } from "./clients.ts";
import { type TableNames, type TableOptions, tableNames } from "./names.ts";

const DEFAULT_TIMEOUT_MS = 5_000;
const DEFAULT_POLL_INTERVAL_MS = 1_000;
const DEFAULT_MAX_CONNECTIONS = 6;

export interface PostgresStoreOptions extends TableOptions {
  /** `postgres://user:password@host:5432/database`. The store then makes its own pool; needs the package `pg`. */
  readonly url?: string;
  /** A pool of `pg` or a client of postgres.js, instead of a URL. It stays the caller's: `close` leaves it open. */
  readonly pool?: PgPool | PostgresJsClient;
  /** How long a call waits for its answer. Default 5000. */
  readonly timeoutMs?: number;
  /** "never": the table must be there. Default "if-missing". */
  readonly create?: "if-missing" | "never";
  /**
   * "transaction" behind a pooler that gives every transaction another connection (PgBouncer's transaction
   * mode). It sets the defaults of `prepare` and `watch`. Default "none".
   */
  readonly pooler?: "none" | "transaction";
  /** "named" statements are parsed once a connection. Default "named", behind a pooler "unnamed". */
  readonly prepare?: "named" | "unnamed";
  /** "listen" hears of changes at once, and falls back to "poll" where notifications do not arrive. */
  readonly watch?: "listen" | "poll";
  /** Default 1000. */
  readonly pollIntervalMs?: number;
  /** Of the store's own pool; a watch has one more. Default 6. */
  readonly maxConnections?: number;
  readonly env?: Env;
}

export interface ResolvedOptions {
  readonly source: { readonly url: string } | { readonly client: PgPool | PostgresJsClient };
  readonly names: TableNames;
  readonly timeoutMs: number;
  readonly create: "if-missing" | "never";
  readonly pooler: "none" | "transaction";
  readonly prepare: "named" | "unnamed";
  readonly watch: "listen" | "poll";
  readonly pollIntervalMs: number;
  readonly maxConnections: number;
  readonly env: Env;
}

export function resolveOptions(options: PostgresStoreOptions): ResolvedOptions {
  const pooler = oneOf("pooler", options.pooler ?? "none", ["none", "transaction"]);
  const direct = pooler === "none";
  return {
    source: sourceOf(options),
    names: tableNames(options),
    timeoutMs: wholeNumber("timeoutMs", options.timeoutMs ?? DEFAULT_TIMEOUT_MS, 1),
    create: oneOf("create", options.create ?? "if-missing", ["if-missing", "never"]),
    pooler,
    prepare: oneOf("prepare", options.prepare ?? (direct ? "named" : "unnamed"), ["named", "unnamed"]),
    watch: oneOf("watch", options.watch ?? (direct ? "listen" : "poll"), ["listen", "poll"]),
    pollIntervalMs: wholeNumber("pollIntervalMs", options.pollIntervalMs ?? DEFAULT_POLL_INTERVAL_MS, 1),
    maxConnections: wholeNumber("maxConnections", options.maxConnections ?? DEFAULT_MAX_CONNECTIONS, 2),
    env: options.env ?? realEnv,
  };
}

function sourceOf({ url, pool }: PostgresStoreOptions): ResolvedOptions["source"] {
  if (url !== undefined && pool === undefined && typeof url === "string") return { url };
  if (pool !== undefined && url === undefined && isClient(pool)) return { client: pool };
  throw bad("give either 'url', a text, or 'pool', a Pool of pg or a client of postgres.js");
}

function isClient(pool: PgPool | PostgresJsClient): boolean {
  if ((typeof pool !== "object" && typeof pool !== "function") || pool === null) return false;
  return "connect" in pool || "unsafe" in pool;
}

function oneOf<Value extends string>(option: string, value: Value, allowed: readonly Value[]): Value {
  if (allowed.includes(value)) return value;
  throw bad(
    `option '${option}' must be ${allowed.map((each) => `"${each}"`).join(" or ")}, got ${JSON.stringify(value)}`,
  );
}

function wholeNumber(option: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw bad(`option '${option}' must be a whole number from ${least}, got ${String(value)}`);
}

function bad(message: string): StoreError {
  return new StoreError("config", message, { outcome: "not-applied" });
}
