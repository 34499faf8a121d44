/**
 * The guard of a SQLite database, for `node:sqlite`, `better-sqlite3` and drivers of their shape. They are
 * synchronous, and so is the guard: nothing else can run on the connection between begin and commit.
 */
import type { Fenced } from "./fenced-resource.ts";
import {
  assertNewest,
  explained,
  FENCE_TABLE_SQL,
  notInTransaction,
  questioned,
  raiseStatements,
  type SqlRow,
} from "./sql-fence.ts";
import type { WithFenceOptions } from "./sql-guard.ts";

/** A database of `node:sqlite` or `better-sqlite3`. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): { get(...values: string[]): unknown };
  /** In better-sqlite3. */
  readonly inTransaction?: boolean;
  /** In node:sqlite; missing before Node 22.16. */
  readonly isTransaction?: boolean;
}

export class SqliteGuard {
  readonly #database: SqliteDatabase;
  readonly #raised = new WeakSet<Fenced>();

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  /** Creates the table of fences if it is missing. */
  createTable(): void {
    this.#database.exec(FENCE_TABLE_SQL.sqlite);
  }

  /** From here on no older fence passes. Throws StaleFenceError if a newer one was there. */
  raise(by: Fenced): void {
    this.#raise(by);
    this.#raised.add(by);
  }

  /** `work` in a transaction that commits only if no newer fence was seen. Throws StaleFenceError otherwise. */
  withFence<T>(by: Fenced, work: () => T, { raiseFirst = true }: WithFenceOptions = {}): T {
    if (raiseFirst && !this.#raised.has(by)) this.raise(by);
    // A transaction that begins by reading cannot always write later.
    this.#database.exec("begin immediate");
    try {
      this.#raise(by);
      const result = work();
      if (result instanceof Promise)
        throw new TypeError("work must not be async: SQLite's drivers are synchronous");
      this.#database.exec("commit");
      return result;
    } catch (error) {
      this.#rollback();
      throw error;
    }
  }

  /** Fences a transaction of your own: its first statement. When this throws, roll back. */
  fenceTransaction(by: Fenced): void {
    const { inTransaction, isTransaction } = this.#database;
    if ((inTransaction ?? isTransaction) === false) throw notInTransaction("a database without one");
    this.#raise(by);
  }

  #raise(by: Fenced): void {
    try {
      let row: unknown;
      for (const each of raiseStatements("sqlite", by))
        row = this.#database.prepare(questioned(each)).get(...each.values);
      assertNewest(by, row as SqlRow | undefined);
    } catch (error) {
      throw explained(error);
    }
  }

  #rollback(): void {
    try {
      this.#database.exec("rollback");
    } catch {
      // Some failures have rolled back already.
    }
  }
}
