/**
 * Statements on the connections of a pool: one statement a call, each committed by itself. A connection whose answer did
 * not come in time is destroyed, as that answer would be taken for the one to the next statement.
 */
import type { Pool, PoolConnection, ResultSetHeader, RowDataPacket } from "mysql2/promise";
import { StoreError } from "../../store/index.ts";
import { endedAs } from "../support/failures.ts";
import { configError } from "../support/options.ts";
import { endsConnection, failureOf, type MysqlError } from "./errors.ts";

export type Row = Readonly<Record<string, unknown>>;

/** The library's own connections, which outlive the shells that its pool hands out. */
type Core = PoolConnection["connection"];

/** Those with a listener for errors. Several stores may share a pool. */
const guarded = new WeakSet<Core>();
const IN_TRANSACTION = 1;
const AUTOCOMMIT = 2;

export class Connections {
  readonly #pool: Pool;
  readonly #prepare: (connection: Connection) => Promise<void>;
  readonly #prepared = new WeakSet<Core>();

  /** `prepare` runs on each new connection, before its first statement. */
  constructor(pool: Pool, prepare: (connection: Connection) => Promise<void>) {
    this.#pool = pool;
    this.#prepare = prepare;
  }

  /** Lends a connection. Rejects with a StoreError, or as `work` does. */
  async use<Value>(signal: AbortSignal, work: (connection: Connection) => Promise<Value>): Promise<Value> {
    const pooled = await this.#pool.getConnection().catch((error) => {
      throw failureOf(error, "no");
    });
    const core = pooled.connection;
    // Errors that belong to no statement come as events; without a listener they would end the process.
    if (!guarded.has(core)) core.on("error", () => undefined);
    guarded.add(core);
    const connection = new Connection(pooled);
    const onAbort = (): void => connection.destroy();
    try {
      if (signal.aborted)
        throw new StoreError("timeout", "mysql: no connection in time", { outcome: "not-applied" });
      signal.addEventListener("abort", onAbort, { once: true });
      if (!this.#prepared.has(core)) {
        const ready = this.#prepare(connection);
        ready.catch(() => connection.destroy());
        // The statement that somebody waits for was not sent yet.
        await ready.catch(endedAs("not-applied"));
      }
      this.#prepared.add(core);
      return await work(connection);
    } finally {
      signal.removeEventListener("abort", onAbort);
      connection.release();
    }
  }
}

/** A connection while it is lent. */
export class Connection {
  readonly #pooled: PoolConnection;
  #isDestroyed = false;

  constructor(pooled: PoolConnection) {
    this.#pooled = pooled;
  }

  rows(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#query<RowDataPacket[]>(sql, values);
  }

  /** Rejects unless the statement is committed: one in an open transaction would be lost with its connection. */
  async write(sql: string, values: readonly unknown[]): Promise<ResultSetHeader> {
    const written = await this.#query<ResultSetHeader>(sql, values);
    if ((written.serverStatus & (AUTOCOMMIT | IN_TRANSACTION)) === AUTOCOMMIT) return written;
    // With its connection the server rolls the transaction back.
    this.destroy();
    throw configError(
      "mysql: the pool's connections must be in autocommit mode, without an open transaction",
    );
  }

  destroy(): void {
    if (!this.#isDestroyed) this.#pooled.destroy();
    this.#isDestroyed = true;
  }

  release(): void {
    if (!this.#isDestroyed) this.#pooled.release();
  }

  async #query<Result extends ResultSetHeader | RowDataPacket[]>(
    sql: string,
    values: readonly unknown[],
  ): Promise<Result> {
    // Whatever the pool's own settings are: rows are objects with the columns' plain types.
    const settings = {
      rowsAsArray: false,
      nestTables: false,
      typeCast: (_: unknown, next: () => unknown) => next(),
    };
    try {
      return (await this.#pooled.query<Result>({ sql, values: [...values], ...settings }))[0];
    } catch (error) {
      if (endsConnection(error as MysqlError)) this.destroy();
      throw failureOf(error as MysqlError, "perhaps");
    }
  }
}
