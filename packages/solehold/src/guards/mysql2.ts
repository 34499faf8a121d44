/** The guard for the package `mysql2`, for MySQL and MariaDB. */
import { notInTransaction, questioned, type SqlRow } from "./sql-fence.ts";
import { SqlGuard } from "./sql-guard.ts";

/** One connection of `mysql2/promise`. A pool is none. */
export interface MysqlConnection {
  execute(text: string, values: string[]): Promise<readonly [unknown, unknown]>;
  readonly getConnection?: never;
}

interface MysqlPoolConnection extends MysqlConnection {
  beginTransaction(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  release(): void;
  destroy(): void;
}

/** A pool of `mysql2/promise`. */
export interface MysqlPool<Connection extends MysqlPoolConnection> {
  getConnection(): Promise<Connection>;
  execute: MysqlConnection["execute"];
}

/** In what the server answers to a write: it belongs to a transaction that is open. */
const STATUS_IN_TRANSACTION = 1;

/** `mysql2Guard(pool)`. A connection of your own goes to `fenceTransaction`. */
export function mysql2Guard<Connection extends MysqlPoolConnection>(
  pool: MysqlPool<Connection>,
): SqlGuard<Connection, MysqlConnection> {
  if (typeof pool.getConnection !== "function" || "promise" in pool)
    throw new TypeError('mysql2Guard needs a pool with promises: createPool() of "mysql2/promise"');
  return new SqlGuard<Connection, MysqlConnection>({
    dialect: "mysql",
    isTransaction: (candidate) => !("getConnection" in candidate),
    query: async (connection, statement) => {
      const [result] = await (connection ?? pool).execute(questioned(statement), [...statement.values]);
      if (Array.isArray(result)) return result as readonly SqlRow[];
      const { serverStatus } = result as { readonly serverStatus: number };
      if (connection !== null && (serverStatus & STATUS_IN_TRANSACTION) === 0)
        throw notInTransaction("a connection without one");
      return [];
    },
    transaction: (work) => transaction(pool, work),
  });
}

async function transaction<Connection extends MysqlPoolConnection>(
  pool: MysqlPool<Connection>,
  work: (connection: Connection) => Promise<void>,
): Promise<void> {
  const connection = await pool.getConnection();
  try {
    await connection.beginTransaction();
    await work(connection);
    await connection.commit();
    connection.release();
  } catch (error) {
    await connection.rollback().then(
      () => connection.release(),
      () => connection.destroy(),
    );
    throw error;
  }
}
