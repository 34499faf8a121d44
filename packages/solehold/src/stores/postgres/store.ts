/**
 * PostgreSQL as the store: one row a key, one statement a batch, the server's clock in every reply.
 *
 * It promises what the server does: a write that was acknowledged is durable unless the server is configured
 * otherwise (then `capabilities.durable` says so), and a conditional write is decided by the row's version
 * under the row's lock. It does not survive a failover that loses acknowledged writes; a version is random
 * and never comes back, so a client that saw a lost one gets a conflict, never somebody else's row.
 */
import type { LeaseKey } from "../../core/index.ts";
import type {
  ApplyReply,
  ConditionalWrite,
  LeaseStore,
  ListPage,
  ListQuery,
  ReadReply,
  StoreCapabilities,
  StoreEvent,
  StoreWatch,
  WatchScope,
} from "../../store/index.ts";
import { StoreError } from "../../store/index.ts";
import { assertOptions } from "../support/options.ts";
import { Announcer } from "./announcer.ts";
import { isPgPool } from "./clients.ts";
import type { SqlDriver } from "./driver.ts";
import { closedError } from "./failures.ts";
import { Listener } from "./listener.ts";
import { listPage } from "./listing.ts";
import { FallingBackSource, type NewsSource } from "./news.ts";
import { type PostgresStoreOptions, type ResolvedOptions, resolveOptions } from "./options.ts";
import { driverOnPool, driverOnUrl } from "./pg-connect.ts";
import { KnownRows } from "./plain-ends.ts";
import { Poller } from "./poller.ts";
import { PostgresJsDriver } from "./postgresjs-driver.ts";
import { Reader } from "./reader.ts";
import { type SetupResult, setUp } from "./setup.ts";
import { type Statements, statementsFor } from "./statements.ts";
import { WatchHub } from "./watch-hub.ts";
import { Writer } from "./writer.ts";

const MAX_BATCH = 1_000;
/** Two: while one batch waits for the disk, the next is being executed. More only make batches smaller. */
const MAX_CONCURRENT_CALLS = 2;
/** Of smaller batches the wait for the disk is the larger part, and shared out it would be waited for twice. */
const LEAST_SHARE = 16;

/** Connects, creates the table on first use, and checks that the store can do its work. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  assertOptions("openPostgresStore", options, '{ url: "postgres://user:password@localhost/database" }');
  const resolved = resolveOptions(options);
  const driver = await driverFor(resolved);
  try {
    return new PostgresStore(driver, resolved, await setUp(driver, resolved.names, resolved.create));
  } catch (error) {
    await driver.close();
    throw error;
  }
}

async function driverFor(options: ResolvedOptions): Promise<SqlDriver> {
  const { source } = options;
  if ("url" in source) return driverOnUrl({ ...options, url: source.url });
  if (isPgPool(source.client)) return driverOnPool(source.client, options);
  return new PostgresJsDriver({ ...options, client: source.client });
}

export class PostgresStore implements LeaseStore {
  readonly name = "postgres";
  readonly capabilities: StoreCapabilities;
  readonly #driver: SqlDriver;
  readonly #table: string;
  readonly #reader: Reader;
  readonly #writer: Writer;
  readonly #announcer: Announcer;
  readonly #watches: WatchHub;
  #closing: Promise<void> | null = null;

  /** @internal Use `openPostgresStore`. */
  constructor(driver: SqlDriver, options: ResolvedOptions, { durable, confirms }: SetupResult) {
    this.capabilities = Object.freeze({
      durable,
      clock: "reply",
      clockGranularityMs: 1,
      watch: true,
      conditionalDelete: true,
      maxBatch: MAX_BATCH,
      maxConcurrentCalls: MAX_CONCURRENT_CALLS,
      minBatch: LEAST_SHARE,
    });
    const { env, names } = options;
    const statements = statementsFor(names);
    this.#driver = driver;
    this.#table = names.sqlTable;
    const known = new KnownRows();
    const isConfirmed = durable && confirms;
    this.#reader = new Reader({ driver, statements, known, confirms: isConfirmed ? "yes" : "no" });
    this.#announcer = new Announcer({ env, driver, statements });
    const { reader, announcer } = { reader: this.#reader, announcer: this.#announcer };
    const early = isConfirmed && driver.confirms === "yes" ? "yes" : "no";
    this.#writer = new Writer({ env, driver, statements, known, reader, announcer, early });
    this.#watches = new WatchHub({
      env,
      source: newsSource(driver, options, statements),
      maxBatch: MAX_BATCH,
      known,
      read: (keys) => this.#reader.look(keys),
    });
  }

  read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const refusal = this.#refusal(keys.length);
    return refusal === null ? this.#reader.read(keys) : Promise.reject(refusal);
  }

  apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const refusal = this.#refusal(writes.length);
    return refusal === null ? this.#writer.apply(writes) : Promise.reject(refusal);
  }

  list(query: ListQuery): Promise<ListPage> {
    const refusal = this.#refusal(0);
    return refusal === null ? listPage(this.#driver, this.#table, query) : Promise.reject(refusal);
  }

  watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    const refusal = this.#refusal(0);
    return refusal === null ? this.#watches.open(scope, listener) : Promise.reject(refusal);
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    this.#announcer.close();
    await this.#watches.close();
    await this.#driver.close();
  }

  #refusal(batch: number): StoreError | null {
    if (this.#closing !== null) return closedError();
    if (batch <= MAX_BATCH) return null;
    const message = `a call takes at most ${MAX_BATCH} keys, got ${batch}: split it`;
    return new StoreError("config", message, { outcome: "not-applied" });
  }
}

function newsSource(driver: SqlDriver, options: ResolvedOptions, { notify }: Statements): NewsSource {
  const { env, names, pollIntervalMs, timeoutMs } = options;
  const poller = new Poller({ env, driver, names, intervalMs: pollIntervalMs });
  if (options.watch === "poll") return poller;
  const { channel, watchedLock } = names;
  return new FallingBackSource(
    new Listener({ env, driver, channel, watchedLock, notify, timeoutMs }),
    poller,
  );
}
