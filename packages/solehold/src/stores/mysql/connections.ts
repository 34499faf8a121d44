/**
 * Statements on the connections of a pool: one statement a call, each committed by itself. A connection whose answer did
 * not come in time is destroyed, as that answer would be taken for the one to the next statement.
 */
import { StoreError } from "../../store/index.ts";
import { endsConnection, failureOf, type MysqlError } from "./errors.ts";

export type Row = Readonly<Record<string, unknown>>;

/** What the server says of a statement that wrote. */
export interface Written {
  readonly affectedRows: number;
  /** The last LAST_INSERT_ID(expression). */
  readonly insertId: number | string;
  readonly serverStatus: number;
}

type Callback<Value> = (error: MysqlError | null, value: Value) => void;

/** The connection and the pool of `mysql2`, in their form with callbacks. */
export interface RawConnection {
  query(
    query: { readonly sql: string; readonly values: readonly unknown[] },
    callback: Callback<unknown>,
  ): unknown;
  on(event: "error", listener: () => void): unknown;
  release(): void;
  destroy(): void;
}

export interface RawPool {
  getConnection(callback: Callback<RawConnection>): void;
  end(callback: (error: unknown) => void): void;
}

/** Those with a listener for errors. Several stores may share a pool. */
const guarded = new WeakSet<RawConnection>();
const IN_TRANSACTION = 1;
const AUTOCOMMIT = 2;

export class Connections {
  readonly #pool: RawPool;
  readonly #prepare: (connection: Connection) => Promise<void>;
  readonly #prepared = new WeakSet<RawConnection>();

  /** `prepare` runs on each new connection, before its first statement. */
  constructor(pool: RawPool, prepare: (connection: Connection) => Promise<void>) {
    this.#pool = pool;
    this.#prepare = prepare;
  }

  /** Lends a connection. Rejects with a StoreError, or as `work` does. */
  async use<Value>(signal: AbortSignal, work: (connection: Connection) => Promise<Value>): Promise<Value> {
    const raw = await this.#get();
    const connection = new Connection(raw);
    const onAbort = (): void => connection.destroy();
    try {
      if (signal.aborted)
        throw new StoreError("timeout", "mysql: no connection in time", { outcome: "not-applied" });
      signal.addEventListener("abort", onAbort, { once: true });
      if (!this.#prepared.has(raw)) {
        await this.#prepare(connection).catch((error) => {
          connection.destroy();
          throw notApplied(error);
        });
        this.#prepared.add(raw);
      }
      return await work(connection);
    } finally {
      signal.removeEventListener("abort", onAbort);
      connection.release();
    }
  }

  #get(): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      this.#pool.getConnection((error, raw) => {
        if (error !== null && error !== undefined) return reject(failureOf(error, "no"));
        // Errors that belong to no statement come as events; without a listener they would end the process.
        if (!guarded.has(raw)) raw.on("error", () => undefined);
        guarded.add(raw);
        resolve(raw);
      });
    });
  }
}

/** A connection while it is lent. */
export class Connection {
  readonly #raw: RawConnection;
  #isDestroyed = false;

  constructor(raw: RawConnection) {
    this.#raw = raw;
  }

  async rows(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return (await this.#query(sql, values)) as readonly Row[];
  }

  /** Rejects unless the statement is committed: one in an open transaction would be lost with its connection. */
  async write(sql: string, values: readonly unknown[]): Promise<Written> {
    const written = (await this.#query(sql, values)) as Written;
    if ((written.serverStatus & (AUTOCOMMIT | IN_TRANSACTION)) === AUTOCOMMIT) return written;
    // With its connection the server rolls the transaction back.
    this.destroy();
    const message = "mysql: the pool's connections must be in autocommit mode, without an open transaction";
    throw new StoreError("config", message, { outcome: "not-applied" });
  }

  destroy(): void {
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    this.#raw.destroy();
  }

  release(): void {
    if (!this.#isDestroyed) this.#raw.release();
  }

  #query(sql: string, values: readonly unknown[]): Promise<unknown> {
    // Whatever the pool's own settings are: rows are objects with the columns' plain types.
    const typeCast = (_field: unknown, next: () => unknown): unknown => next();
    const query = { sql, values, rowsAsArray: false, nestTables: false, typeCast };
    return new Promise((resolve, reject) => {
      this.#raw.query(query, (error, result) => {
        if (error === null || error === undefined) return resolve(result);
        if (endsConnection(error)) this.destroy();
        reject(failureOf(error, "perhaps"));
      });
    });
  }
}

/** The statement that somebody waits for was not sent yet. */
function notApplied(error: unknown): unknown {
  if (!(error instanceof StoreError) || error.outcome === "not-applied") return error;
  return new StoreError(error.kind, error.message, { outcome: "not-applied", cause: error.cause });
}
