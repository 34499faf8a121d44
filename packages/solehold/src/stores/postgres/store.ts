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
import type { Polling } from "../../store/polling.ts";
import { assertOptions, configError } from "../support/options.ts";
import { RecordAccess } from "./access.ts";
import { Calls } from "./calls.ts";
import { NotificationsUnavailable, type SqlDriver } from "./driver.ts";
import { ServerIdentity } from "./identity.ts";
import { Listener } from "./listener.ts";
import { listPage } from "./listing.ts";
import {
  type PostgresStoreOptions,
  type ResolvedOptions,
  resolveOptions,
  type StoreContext,
} from "./options.ts";
import { PgDriver, pgDriverOnUrl } from "./pg-driver.ts";
import { pollerOf } from "./poller.ts";
import { PostgresJsDriver } from "./postgresjs-driver.ts";
import { ensureTable, inspectServer } from "./setup.ts";
import { statementsFor } from "./statements.ts";

const MAX_BATCH = 1_000;

const CAPABILITIES: Omit<StoreCapabilities, "durable"> = {
  clock: "reply",
  clockGranularityMs: 1,
  clockSkewMs: 0,
  watch: true,
  conditionalDelete: true,
  maxBatch: MAX_BATCH,
  // Two: while one batch waits for the disk, the next is being executed. More only make batches smaller.
  maxConcurrentCalls: 2,
  // Of smaller batches the wait for the disk is the larger part, and shared out it would be waited for twice.
  minBatch: 16,
};

/** Connects, creates the table on first use, and checks that the store can do its work. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  assertOptions("openPostgresStore", options, '{ url: "postgres://user:password@localhost/database" }');
  const resolved = resolveOptions(options);
  const driver = await driverFor(resolved);
  try {
    const calls = new Calls(driver, resolved);
    const server = await inspectServer(calls, resolved.names);
    const statements = statementsFor(resolved.names, server.questions);
    const context = { ...resolved, driver, calls, server, statements };
    await ensureTable(context);
    const store = new PostgresStore(context);
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
  return "connect" in source.client ? new PgDriver(source.client) : new PostgresJsDriver(source.client, env);
}

export class PostgresStore implements LeaseStore {
  readonly name = "postgres";
  readonly capabilities: StoreCapabilities;
  readonly #context: StoreContext;
  readonly #access: RecordAccess;
  readonly #listener: Listener;
  readonly #poller: Polling;
  #watch: "listen" | "poll";
  #closing: Promise<void> | null = null;

  /** @internal Use `openPostgresStore`. */
  constructor(context: StoreContext) {
    const identity = new ServerIdentity(context);
    this.capabilities = Object.freeze({ ...CAPABILITIES, durable: context.server.durable });
    this.#context = context;
    this.#access = new RecordAccess(context, identity);
    this.#listener = new Listener(context, () => identity.channel());
    this.#poller = pollerOf(context);
    this.#watch = context.watch;
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
    return listPage(this.#context, query);
  }

  /** By notification where it arrives, by polling where it does not: the first watch finds out which. */
  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    this.#assertUsable(0);
    try {
      if (this.#watch === "listen") return await this.#listener.watch(scope, listener);
    } catch (error) {
      if (!(error instanceof NotificationsUnavailable)) throw error;
      this.#watch = "poll";
    }
    const watch = await this.#poller.watch(scope, listener);
    // The store may have been closed in between.
    if (this.#closing !== null) await watch.close();
    this.#assertUsable(0);
    return watch;
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    this.#access.close();
    this.#poller.close();
    await this.#listener.close();
    await this.#context.calls.close();
    await this.#context.driver.close();
  }

  #assertUsable(batch: number): void {
    if (this.#closing !== null)
      throw new StoreError("closed", "the postgres store was closed", { outcome: "not-applied" });
    if (batch > MAX_BATCH)
      throw configError(`a call takes at most ${MAX_BATCH} keys, got ${batch}: split it`);
  }
}
