/**
 * PostgreSQL as the store: one row a key, one statement a batch, the server's clock in every reply.
 *
 * It promises what the server does: a write that was acknowledged is durable as far as `capabilities.durable` says, and a
 * conditional write is decided by the row's version under the row's lock. A failover may lose acknowledged writes; a
 * version is random and never comes back, so a client that saw a lost one gets a conflict, never somebody else's row.
 */
import { type FullStore, fullCapabilities } from "../../store/index.ts";
import { closedError } from "../support/failures.ts";
import { assertOptions } from "../support/options.ts";
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

export type PostgresStore = FullStore;

const BATCHES = {
  maxBatch: 1_000,
  // Two: while one batch waits for the disk, the next is being executed. More only make batches smaller.
  maxConcurrentCalls: 2,
  // Of smaller batches the wait for the disk is the larger part, and shared out it would be waited for twice.
  minBatch: 16,
};

/** Connects, creates the table on first use, and checks that the store can do its work. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const known = "url pool schema table timeoutMs create pooler watch pollIntervalMs maxConnections";
  assertOptions(
    "openPostgresStore",
    options,
    '{ url: "postgres://user:password@localhost/database" }',
    known,
  );
  const resolved = resolveOptions(options);
  const driver = await driverFor(resolved);
  try {
    const calls = new Calls(driver, resolved);
    const server = await inspectServer(calls, resolved.names);
    const statements = statementsFor(resolved.names, server.questions);
    const context = { ...resolved, driver, calls, server, statements };
    await ensureTable(context);
    const store = storeOn(context);
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

function storeOn(context: StoreContext): PostgresStore {
  const { calls, driver, server } = context;
  const identity = new ServerIdentity(context);
  const access = new RecordAccess(context, identity);
  const listener = new Listener(context, () => identity.channel());
  const poller = pollerOf(context);
  let way = context.watch;
  let closing: Promise<void> | null = null;
  /** By notification where it arrives, by polling where it does not: the first watch finds out which. */
  const watch: PostgresStore["watch"] = async (scope, onEvent) => {
    try {
      if (way === "listen") return await listener.watch(scope, onEvent);
    } catch (error) {
      if (!(error instanceof NotificationsUnavailable)) throw error;
      way = "poll";
    }
    const opened = await poller.watch(scope, onEvent);
    if (closing === null) return opened;
    // The store was closed in between.
    await opened.close();
    throw closedError("postgres");
  };
  const end = async (): Promise<void> => {
    const done = calls.close();
    access.close();
    poller.close();
    await listener.close();
    await done;
    await driver.close();
  };
  return {
    name: "postgres",
    capabilities: fullCapabilities({ durable: server.durable, clock: "reply", ...BATCHES }),
    read: (keys) => access.read(keys),
    apply: (writes) => access.apply(writes),
    list: (query) => listPage(context, query),
    watch,
    close: () => {
      closing ??= end();
      return closing;
    },
  };
}
