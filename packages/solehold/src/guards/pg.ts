/** The guard for the package `pg`. */
import { numbered, type SqlRow } from "./sql-fence.ts";
import { SqlGuard } from "./sql-guard.ts";

/** One connection of `pg`: a Client, or what a pool's `connect()` resolves to. A pool is none. */
export interface PgConnection {
  query(
    text: string,
    values?: string[],
  ): Promise<{ readonly command: string; readonly rows: readonly SqlRow[] }>;
  readonly totalCount?: never;
}

interface PgPoolConnection extends PgConnection {
  release(error?: Error | boolean): void;
}

/** A Pool of `pg`. */
export interface PgPool<Connection extends PgPoolConnection> {
  /** Both forms, so that the compiler infers `Connection` from the first. */
  readonly connect: { (): Promise<Connection>; (callback: (...result: never[]) => void): void };
  query: PgConnection["query"];
  readonly totalCount: number;
}

/** `pgGuard(pool)`. A Client of your own goes to `fenceTransaction`. */
export function pgGuard<Connection extends PgPoolConnection>(
  pool: PgPool<Connection>,
): SqlGuard<Connection, PgConnection> {
  if (typeof pool.totalCount !== "number")
    throw new TypeError(
      "pgGuard needs a Pool of pg, because each transaction has a connection of its own: new pg.Pool()",
    );
  return new SqlGuard<Connection, PgConnection>({
    dialect: "postgres",
    isTransaction: (candidate) => !("totalCount" in candidate),
    query: async (connection, statement) =>
      (await (connection ?? pool).query(numbered(statement), [...statement.values])).rows,
    transaction: (work) => transaction(pool, work),
  });
}

async function transaction<Connection extends PgPoolConnection>(
  pool: PgPool<Connection>,
  work: (connection: Connection) => Promise<void>,
): Promise<void> {
  const connection = await pool.connect();
  try {
    await connection.query("begin");
    await work(connection);
    // PostgreSQL answers the commit of a transaction with a failed statement by rolling back, without an error.
    const { command } = await connection.query("commit");
    if (command !== "COMMIT")
      throw new Error(
        "the transaction was rolled back: a statement in it had failed, and its error was ignored",
      );
    connection.release();
  } catch (error) {
    await connection.query("rollback").then(
      () => connection.release(),
      (broken: Error) => connection.release(broken),
    );
    throw error;
  }
}
