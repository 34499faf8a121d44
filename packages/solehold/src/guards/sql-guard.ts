/**
 * The guard of a SQL database, for every client that works with promises. `withFence` is the usual way;
 * `fenceTransaction` is for a transaction of your own; `raise` is for a new holder that reads outside of one.
 */
import type { Fenced } from "./fenced-resource.ts";
import { fenceSetting } from "./postgres-trigger.ts";
import {
  assertNewest,
  explained,
  FENCE_TABLE_SQL,
  notInTransaction,
  raiseStatements,
  type SqlDialect,
  type SqlRow,
  type SqlStatement,
} from "./sql-fence.ts";

/** What a guard needs of a client: see the files beside this one, each of which is one. */
export interface SqlClient<Transaction extends Session, Session = Transaction> {
  readonly dialect: SqlDialect;
  /** Runs one statement in the transaction, or, with null, by itself. Returns its rows. */
  query(transaction: Session | null, statement: SqlStatement): Promise<readonly SqlRow[]>;
  /** Runs `work` in a transaction: committed when it resolves, rolled back when it rejects. */
  transaction(work: (transaction: Transaction) => Promise<void>): Promise<unknown>;
  /** Whether this is a transaction, as far as it can be seen without asking the database. */
  isTransaction(candidate: Session): boolean;
}

export interface WithFenceOptions {
  /**
   * Commits the fence before the transaction begins, once for each lease, so that it stays raised even if
   * the transaction fails. Default true. False saves a commit for a lease that is used for one write.
   */
  readonly raiseFirst?: boolean;
}

/** `Transaction` is what `withFence` hands to its work, `Session` what `fenceTransaction` takes. */
export class SqlGuard<Transaction extends Session, Session = Transaction> {
  readonly #client: SqlClient<Transaction, Session>;
  readonly #raised = new WeakSet<Fenced>();

  constructor(client: SqlClient<Transaction, Session>) {
    this.#client = client;
  }

  /** Creates the table of fences if it is missing. */
  async createTable(): Promise<void> {
    const parts = [FENCE_TABLE_SQL[this.#client.dialect]];
    await this.#client.query(null, { parts: Object.assign(parts, { raw: parts }), values: [] });
  }

  /** From here on no older fence passes. Throws StaleFenceError if a newer one was there. */
  async raise(by: Fenced): Promise<void> {
    await this.#raiseIn(null, by);
    this.#raised.add(by);
  }

  /** `work` in a transaction that commits only if no newer fence was seen. Throws StaleFenceError otherwise. */
  async withFence<T>(
    by: Fenced,
    work: (transaction: Transaction) => Promise<T>,
    { raiseFirst = true }: WithFenceOptions = {},
  ): Promise<T> {
    if (raiseFirst && !this.#raised.has(by)) await this.raise(by);
    const results: T[] = [];
    await this.#client.transaction(async (transaction) => {
      await this.fenceTransaction(transaction, by);
      results.push(await work(transaction));
    });
    return results[0] as T;
  }

  /**
   * Fences a transaction of your own: its first statement. When this rejects, roll back. An older writer
   * waits until this transaction ends, and is then refused.
   */
  async fenceTransaction(transaction: Session, by: Fenced): Promise<void> {
    if (!this.#client.isTransaction(transaction)) throw notInTransaction("something else");
    await this.#raiseIn(transaction, by);
    if (this.#client.dialect === "postgres") await this.#announce(transaction, by);
  }

  async #raiseIn(transaction: Session | null, by: Fenced): Promise<void> {
    try {
      let rows: readonly SqlRow[] = [];
      for (const each of raiseStatements(this.#client.dialect, by))
        rows = await this.#client.query(transaction, each);
      assertNewest(by, rows[0]);
    } catch (error) {
      throw explained(error);
    }
  }

  /** For the trigger. The raise gave the transaction an id: without one, that was a transaction by itself. */
  async #announce(transaction: Session, by: Fenced): Promise<void> {
    const [row] = await this.#client.query(transaction, fenceSetting(by));
    if (row?.in_transaction !== true) throw notInTransaction("a connection or a pool");
  }
}
