/** How to open a store on PostgreSQL. Every value is checked, and a bad one is named with its fix. */
import { type Env, realEnv } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import { isPgClient, type PgPool, type PostgresJsClient } from "./clients.ts";
import { type TableNames, type TableOptions, tableNames } from "./names.ts";

const DEFAULT_TIMEOUT_MS = 5_000;
const DEFAULT_POLL_INTERVAL_MS = 1_000;
const DEFAULT_MAX_CONNECTIONS = 6;

export interface PostgresStoreOptions extends TableOptions {
  /** `postgres://user:password@host:5432/database`. The store makes its own pool; it needs the package `pg`. */
  readonly url?: string;
  /** A Pool of `pg` or a client of postgres.js, instead of a URL. It stays the caller's: `close` leaves it open. */
  readonly pool?: PgPool | PostgresJsClient;
  /** How long a call waits for its answer. Default 5000. */
  readonly timeoutMs?: number;
  /** "never": the table must be there. Default "if-missing". */
  readonly create?: "if-missing" | "never";
  /**
   * "transaction" behind a pooler that may run each transaction on another connection (PgBouncer's transaction mode,
   * RDS Proxy): no settings at the start of a connection, no named statements, no LISTEN. Default "none".
   */
  readonly pooler?: "none" | "transaction";
  /** "listen" reports changes at once, and falls back to "poll" where notifications do not arrive. */
  readonly watch?: "listen" | "poll";
  /** Default 1000. */
  readonly pollIntervalMs?: number;
  /** Of the store's own pool; a watch takes one more. Default 6. */
  readonly maxConnections?: number;
  readonly env?: Env;
}

export interface ResolvedOptions {
  readonly source: { readonly url: string } | { readonly client: PgPool | PostgresJsClient };
  readonly names: TableNames;
  readonly timeoutMs: number;
  readonly create: "if-missing" | "never";
  readonly pooler: "none" | "transaction";
  readonly watch: "listen" | "poll";
  readonly pollIntervalMs: number;
  readonly maxConnections: number;
  readonly env: Env;
}

export function resolveOptions(options: PostgresStoreOptions): ResolvedOptions {
  const pooler = oneOf("pooler", options.pooler ?? "none", ["none", "transaction"]);
  const watch = options.watch ?? (pooler === "none" ? "listen" : "poll");
  return {
    source: sourceOf(options),
    names: tableNames(options),
    timeoutMs: wholeNumber("timeoutMs", options.timeoutMs ?? DEFAULT_TIMEOUT_MS, 1),
    create: oneOf("create", options.create ?? "if-missing", ["if-missing", "never"]),
    pooler,
    watch: oneOf("watch", watch, ["listen", "poll"]),
    pollIntervalMs: wholeNumber("pollIntervalMs", options.pollIntervalMs ?? DEFAULT_POLL_INTERVAL_MS, 1),
    maxConnections: wholeNumber("maxConnections", options.maxConnections ?? DEFAULT_MAX_CONNECTIONS, 2),
    env: options.env ?? realEnv,
  };
}

function sourceOf({ url, pool }: PostgresStoreOptions): ResolvedOptions["source"] {
  if (pool === undefined && typeof url === "string") return { url };
  if (url === undefined && isClient(pool)) {
    if (isPgClient(pool))
      throw bad("option 'pool' must be a Pool of pg, got a Client: the store has to reconnect by itself");
    return { client: pool };
  }
  throw bad("give either 'url', a text, or 'pool', a Pool of pg or a client of postgres.js");
}

function isClient(pool: PostgresStoreOptions["pool"]): pool is PgPool | PostgresJsClient {
  if ((typeof pool !== "object" && typeof pool !== "function") || pool === null) return false;
  return "connect" in pool || "unsafe" in pool;
}

function oneOf<Value extends string>(option: string, value: Value, allowed: readonly Value[]): Value {
  if (allowed.includes(value)) return value;
  const choices = allowed.map((each) => `"${each}"`).join(" or ");
  throw bad(`option '${option}' must be ${choices}, got ${JSON.stringify(value)}`);
}

function wholeNumber(option: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw bad(`option '${option}' must be a whole number from ${least}, got ${String(value)}`);
}

export function bad(message: string, cause?: unknown): StoreError {
  return new StoreError("config", message, { outcome: "not-applied", cause });
}
