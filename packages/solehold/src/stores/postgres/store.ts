/**
 * PostgreSQL as the store: one row a key, one statement a batch, the server's clock in every reply.
 *
 * It promises what the server does: a write that was acknowledged is durable as far as `capabilities.durable` says, and a
 * conditional write is decided by the row's version under the row's lock. A failover may lose acknowledged writes; a
 * version is random and never comes back, so a client that saw a lost one gets a conflict, never somebody else's row.
 */
import type { LeaseKey } from "../../core/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  type ReadReply,
  type StoreCapabilities,
  StoreError,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
} from "../../store/index.ts";
import { assertOptions } from "../support/options.ts";
import { RecordAccess } from "./access.ts";
import { Announcer } from "./announcer.ts";
import { Calls } from "./calls.ts";
import { isPgPool } from "./clients.ts";
import type { SqlDriver } from "./driver.ts";
import { closedError } from "./failures.ts";
import { ServerIdentity } from "./identity.ts";
import { Listener } from "./listener.ts";
import { listPage } from "./listing.ts";
import { type PostgresStoreOptions, type ResolvedOptions, resolveOptions } from "./options.ts";
import { PgDriver, pgDriverOnUrl } from "./pg-driver.ts";
import { Poller } from "./poller.ts";
import { PostgresJsDriver } from "./postgresjs-driver.ts";
import { type SetupResult, setUp } from "./setup.ts";
import { statementsFor } from "./statements.ts";
import { type ChangeSource, FallingBackSource } from "./watching.ts";

const MAX_BATCH = 1_000;
/** Two: while one batch waits for the disk, the next is being executed. More only make batches smaller. */
const MAX_CONCURRENT_CALLS = 2;
/** Of smaller batches the wait for the disk is the larger part, and shared out it would be waited for twice. */
const MIN_BATCH = 16;

/** Connects, creates the table on first use, and checks that the store can do its work. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  assertOptions("openPostgresStore", options, '{ url: "postgres://user:password@localhost/database" }');
  const resolved = resolveOptions(options);
  const driver = await driverFor(resolved);
  const { env, timeoutMs, pooler } = resolved;
  const calls = new Calls({ env, driver, timeoutMs, prepare: pooler === "none" ? "named" : "unnamed" });
  try {
    const found = await setUp(calls, resolved.names, resolved.create);
    const store = new PostgresStore(driver, calls, resolved, found);
    await store.read([]);
    return store;
  } catch (error) {
    await driver.close();
    throw error;
  }
}

async function driverFor(options: ResolvedOptions): Promise<SqlDriver> {
  const { source, env } = options;
  if ("url" in source) return pgDriverOnUrl(source.url, options);
  return isPgPool(source.client) ? new PgDriver(source.client) : new PostgresJsDriver(source.client, env);
}

export class PostgresStore implements LeaseStore {
  readonly name = "postgres";
  readonly capabilities: StoreCapabilities;
  readonly #driver: SqlDriver;
  readonly #calls: Calls;
  readonly #table: string;
  readonly #access: RecordAccess;
  readonly #announcer: Announcer;
  readonly #changes: ChangeSource;
  #closing: Promise<void> | null = null;

  /** @internal Use `openPostgresStore`. */
  constructor(driver: SqlDriver, calls: Calls, options: ResolvedOptions, { durable, servers }: SetupResult) {
    this.capabilities = Object.freeze({
      durable,
      clock: "reply",
      clockGranularityMs: 1,
      clockSkewMs: 0,
      watch: true,
      conditionalDelete: true,
      maxBatch: MAX_BATCH,
      maxConcurrentCalls: MAX_CONCURRENT_CALLS,
      minBatch: MIN_BATCH,
    });
    const { env, names, timeoutMs, pollIntervalMs } = options;
    const statements = statementsFor(names);
    const identity = new ServerIdentity({ env, calls, names, statements, servers });
    this.#driver = driver;
    this.#calls = calls;
    this.#table = names.sqlTable;
    this.#announcer = new Announcer({ env, calls, statements });
    const { place } = driver;
    this.#access = new RecordAccess({ calls, statements, identity, announcer: this.#announcer, place });
    const poller = new Poller({ env, calls, table: names.sqlTable, intervalMs: pollIntervalMs });
    const channel = (): Promise<string> => identity.channel();
    const lock = names.listenerLock;
    this.#changes =
      options.watch === "poll"
        ? poller
        : new FallingBackSource(
            new Listener({ env, driver, calls, statements, lock, timeoutMs, channel }),
            poller,
          );
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    this.#assertUsable(keys.length);
    return this.#access.read(keys);
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    this.#assertUsable(writes.length);
    return this.#access.apply(writes);
  }

  async list(query: ListQuery): Promise<ListPage> {
    this.#assertUsable(0);
    return listPage(this.#calls, this.#table, query);
  }

  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    this.#assertUsable(0);
    return this.#changes.watch(scope, listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    this.#announcer.close();
    await this.#changes.close();
    await this.#calls.close();
    await this.#driver.close();
  }

  #assertUsable(batch: number): void {
    if (this.#closing !== null) throw closedError();
    if (batch <= MAX_BATCH) return;
    const message = `a call takes at most ${MAX_BATCH} keys, got ${batch}: split it`;
    throw new StoreError("config", message, { outcome: "not-applied" });
  }
}
