/** How to open a store on PostgreSQL. Every value is checked, and a bad one is named with its fix. */
import { realEnv } from "../../env/index.ts";
import { assertWholeNumbers } from "../../store/index.ts";
import { assertOneOf, type CallOptions, configError, withoutPassword } from "../support/options.ts";
import type { Calls } from "./calls.ts";
import type { SqlDriver } from "./driver.ts";
import { type TableNames, type TableOptions, tableNames } from "./names.ts";
import type { PgPool } from "./pg-driver.ts";
import type { PostgresJsClient } from "./postgresjs-driver.ts";
import type { Server } from "./setup.ts";
import type { Statements } from "./statements.ts";

export interface PostgresStoreOptions extends TableOptions, CallOptions {
  /**
   * `postgres://user:password@host:5432/database`, and behind a pooler `?pooler=transaction`. The store makes its own
   * pool; it needs the package `pg`, which reads the other parameters (`sslmode`).
   */
  readonly url?: string;
  /** A Pool of `pg` or a client of postgres.js, instead of a URL. It stays the caller's: `close` leaves it open. */
  readonly pool?: PgPool | PostgresJsClient;
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
}

type Source =
  | { readonly url: string; readonly pooler: string | null }
  | { readonly client: PgPool | PostgresJsClient };

export interface ResolvedOptions
  extends Readonly<Required<Omit<PostgresStoreOptions, "url" | "pool" | keyof TableOptions>>> {
  readonly source: Source;
  readonly names: TableNames;
}

/** What the parts of an open store share. */
export interface StoreContext extends ResolvedOptions {
  readonly driver: SqlDriver;
  readonly calls: Calls;
  readonly server: Server;
  readonly statements: Statements;
}

export function resolveOptions(options: PostgresStoreOptions): ResolvedOptions {
  const { timeoutMs = 5_000, pollIntervalMs = 1_000, maxConnections = 6, create = "if-missing" } = options;
  const { env = realEnv } = options;
  const source = sourceOf(options);
  const inUrl = "url" in source ? source.pooler : null;
  const pooler = options.pooler ?? ((inUrl ?? "none") as ResolvedOptions["pooler"]);
  const { watch = pooler === "none" ? "listen" : "poll" } = options;
  assertWholeNumbers("postgres", { timeoutMs, pollIntervalMs }, 1);
  assertWholeNumbers("postgres", { maxConnections }, 2);
  assertOneOf("postgres", "create", create, ["if-missing", "never"]);
  assertOneOf("postgres", "pooler", pooler, ["none", "transaction"]);
  assertOneOf("postgres", "watch", watch, ["listen", "poll"]);
  const names = tableNames(options);
  return {
    ...{ source, names, env, timeoutMs, pollIntervalMs },
    ...{ maxConnections, create, pooler, watch },
  };
}

/**
 * Not a Client of `pg`: only its owner could open it again, and an acknowledged write could be rolled back with a
 * transaction that its owner has open.
 */
function sourceOf({ url, pool }: PostgresStoreOptions): Source {
  if (pool === undefined && typeof url === "string") return parsePostgresUrl(url);
  const isClient = (typeof pool === "object" && pool !== null) || typeof pool === "function";
  if (url !== undefined || !isClient || !("connect" in pool || "unsafe" in pool))
    throw configError(
      "postgres: give either 'url', a text, or 'pool', a Pool of pg or a client of postgres.js",
    );
  if ("connect" in pool && "escapeLiteral" in pool)
    throw configError(
      "postgres: pool must be a Pool of pg, got a Client: the store has to reconnect by itself",
    );
  return { client: pool };
}

const EXAMPLE = "postgres://user:password@host:5432/database";
/** Where only a URL can be given, as on a command line. */
const IN_URL = "pooler";
const NOT_IN_URL = ["schema", "table", "timeoutMs", "create", "watch", "pollIntervalMs", "maxConnections"];

/** What is not the store's own is left to the client library. */
function parsePostgresUrl(text: string): Source {
  if (!/^postgres(ql)?:\/\//i.test(text))
    throw configError(`postgres: url must begin with postgres:// or postgresql://, as in ${EXAMPLE}`);
  if (!URL.canParse(text))
    throw configError(
      `postgres: url must look like ${EXAMPLE}, with a port up to 65535 and user and password percent-encoded, got '${withoutPassword(text)}'`,
    );
  const url = new URL(text);
  const misplaced = NOT_IN_URL.find((name) => url.searchParams.has(name));
  if (misplaced !== undefined)
    throw configError(
      `postgres: the URL has the option '${misplaced}': pass it to openPostgresStore. Of its own options it may have ${IN_URL}`,
    );
  const pooler = url.searchParams.get(IN_URL);
  url.searchParams.delete(IN_URL);
  return { url: pooler === null ? text : url.href, pooler };
}
