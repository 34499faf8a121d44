/** Opening: from options to a store that has reached its server once, and found or made its table. */
import { connect, type Socket } from "node:net";
import type { Pool } from "mysql2/promise";
import { type Env, realEnv } from "../../env/index.ts";
import {
  assertWholeNumbers,
  type LeaseStore,
  type SimpleBackend,
  SimpleStore,
  StoreError,
  withAbort,
  withDeadline,
} from "../../store/index.ts";
import { silenceError } from "../support/failures.ts";
import { assertOptions, loadPackage } from "../support/options.ts";
import { type Connection, Connections } from "./connections.ts";
import { ACCESS_DENIED, errnoOf } from "./errors.ts";
import { ServerIdentity } from "./identity.ts";
import { assertTable, type MysqlPool, type MysqlStoreOptions, parseMysqlUrl, problem } from "./options.ts";
import { tableSql, viewSql } from "./schema.ts";
import { LeaseTable } from "./table.ts";

/** Rejects with a StoreError of one line that says what to do. */
export async function openMysqlStore(options: MysqlStoreOptions): Promise<LeaseStore> {
  const known = "url pool table timeoutMs concurrency pollMs";
  assertOptions("openMysqlStore", options, '{ url: "mysql://user:password@localhost/database" }', known);
  const { env = realEnv, timeoutMs = 5_000, concurrency = 16, pollMs } = options;
  const table = assertTable(options.table ?? "solehold_leases");
  if ("url" in options === "pool" in options)
    throw problem("give either url or pool, not both and not neither");
  assertWholeNumbers("mysql", { timeoutMs, concurrency, pollMs: pollMs ?? 1 }, 1);
  const isOwnPool = "url" in options;
  const { pool, close } = isOwnPool
    ? await poolForUrl(options.url, env, timeoutMs, concurrency)
    : { pool: givenPool(options.pool), close: async () => undefined };
  const leases = new LeaseTable(table);
  const identity = new ServerIdentity(env, leases);
  let isSetUp = false;
  const connections = new Connections(pool, async (connection) => {
    if (isOwnPool) await setSession(connection, timeoutMs);
    if (!isSetUp) await setUp(connection, table);
    isSetUp = true;
    await identity.look(connection);
  });
  const call = async <Reply>(signal: AbortSignal, work: (connection: Connection) => Promise<Reply>) => {
    const reply = await connections.use(signal, work);
    return { ...reply, serverChangedAtMs: identity.changedAtMs };
  };
  const backend: SimpleBackend = {
    get: (key, signal) => call(signal, (connection) => leases.get(connection, key)),
    putIf: (put, signal) => call(signal, (connection) => leases.putIf(connection, put)),
    deleteIf: (key, expected, signal) =>
      call(signal, (connection) => leases.deleteIf(connection, key, expected)),
    list: (range, signal) => call(signal, (connection) => leases.list(connection, range)),
    close,
  };
  try {
    const reachable = (signal: AbortSignal): Promise<boolean> => connections.use(signal, isDurable);
    const durable = await withAbort(env, timeoutMs, reachable, () =>
      silenceError("the mysql server", timeoutMs, "not-applied"),
    );
    const timing = { timeoutMs, concurrency, env, ...(pollMs !== undefined && { pollMs }) };
    return new SimpleStore({ name: "mysql", backend, durable, clock: "reply", ...timing });
  } catch (error) {
    await close();
    throw error;
  }
}

async function poolForUrl(
  url: string,
  env: Env,
  timeoutMs: number,
  concurrency: number,
): Promise<{ readonly pool: Pool; readonly close: () => Promise<void> }> {
  const address = parseMysqlUrl(url);
  const { createPool } = await loadPackage("mysql", "mysql2", () => import("mysql2/promise"));
  const { host, port } = address;
  const sockets = new Set<Socket>();
  const stream = (): Socket => {
    const socket = connect({ host, port, keepAlive: true, noDelay: true });
    sockets.add(socket);
    // The client library only ends its half, and would wait for a server that may never answer.
    return socket.once("finish", () => socket.destroy()).once("close", () => sockets.delete(socket));
  };
  const pool = createPool({ ...address, connectionLimit: concurrency, connectTimeout: timeoutMs, stream });
  const close = async (): Promise<void> => {
    await withDeadline(env, timeoutMs, pool.end(), () =>
      silenceError("the mysql server", timeoutMs, "not-applied"),
    ).catch(() => undefined);
    for (const socket of sockets) socket.destroy();
  };
  return { pool, close };
}

/** A pool with callbacks makes one with promises of itself. */
function givenPool(given: MysqlPool): Pool {
  const { promise } = (given ?? {}) as { readonly promise?: () => Pool };
  const pool = typeof promise === "function" ? promise.call(given) : (given as Pool | null);
  if (typeof pool?.getConnection === "function") return pool;
  throw problem("pool must be a pool of mysql2, as createPool() makes it");
}

/** So that a wait for a row ends with a clear answer, before nobody waits for it any more. */
async function setSession(connection: Connection, timeoutMs: number): Promise<void> {
  await connection.rows("set session transaction isolation level read committed");
  await connection.rows(
    `set session innodb_lock_wait_timeout = ${Math.max(1, Math.floor(timeoutMs / 1_000) - 1)}`,
  );
}

async function setUp(connection: Connection, table: string): Promise<void> {
  const find = (): ReturnType<Connection["rows"]> =>
    connection.rows(
      `select database() as db, (select engine from information_schema.tables
        where table_schema = database() and table_name = ?) as engine`,
      [table],
    );
  let [found] = await find();
  if (found?.db === null) throw problem("the connection has no database: name one in the URL or in the pool");
  if (found?.engine === null) {
    await create(connection, table);
    [found] = await find();
  }
  if (String(found?.engine).toLowerCase() !== "innodb")
    throw problem(
      `table '${table}' is kept by ${String(found?.engine)}, which is not safe: use an InnoDB table`,
    );
}

async function create(connection: Connection, table: string): Promise<void> {
  try {
    await connection.rows(tableSql(table));
  } catch (error) {
    if (!ACCESS_DENIED.has(errnoOf(error))) throw error;
    const advice = "grant it CREATE, or create the table with the statements that mysqlSchema() returns";
    const message = `mysql: the account may not create table '${table}': ${advice}`;
    throw new StoreError("auth", message, { outcome: "not-applied", cause: error });
  }
  // A convenience for people. Two who begin at once, or an account without CREATE VIEW, do without.
  await connection.rows(viewSql(table)).catch(() => undefined);
}

/**
 * Every commit is synced, in the binary log too, and no replica is attached that could take over without the last
 * writes. Where the account could not see a replica, nothing is certain.
 */
async function isDurable(connection: Connection): Promise<boolean> {
  const [row] = await connection.rows(
    `select @@innodb_flush_log_at_trx_commit as flush, @@log_bin as log_bin, @@sync_binlog as sync_binlog,
      (select count(*) from information_schema.processlist where command like 'Binlog Dump%') as replicas,
      (select count(*) from information_schema.user_privileges where privilege_type = 'PROCESS'
        and grantee = concat('''', replace(current_user(), '@', '''@'''), '''')) as may_see`,
  );
  const { flush, log_bin, sync_binlog, replicas, may_see } = row ?? {};
  if (Number(flush) !== 1) return false;
  return (
    Number(log_bin) === 0 || (Number(sync_binlog) === 1 && Number(replicas) === 0 && Number(may_see) === 1)
  );
}
