/** The guard for Drizzle, over PostgreSQL and MySQL. Drizzle over SQLite: `SqliteGuard` with the driver under it. */

import { rowsOf } from "./sql-fence.ts";
import { SqlGuard } from "./sql-guard.ts";

/** A database or transaction of Drizzle, as far as it is used. */
export interface DrizzleExecutor<Query> {
  execute(query: Query): PromiseLike<unknown>;
}

export interface DrizzleDatabase<Query, Transaction> extends DrizzleExecutor<Query> {
  transaction(work: (transaction: Transaction) => Promise<void>): Promise<unknown>;
}

export interface DrizzleGuardOptions<Query, Transaction> {
  readonly db: DrizzleDatabase<Query, Transaction>;
  /** `import { sql } from "drizzle-orm"` */
  readonly sql: (parts: TemplateStringsArray, ...values: unknown[]) => Query;
  readonly dialect: "postgres" | "mysql";
}

export function drizzleGuard<Query, Transaction extends DrizzleExecutor<Query> & { rollback: unknown }>({
  db,
  sql,
  dialect,
}: DrizzleGuardOptions<Query, Transaction>): SqlGuard<Transaction> {
  return new SqlGuard({
    dialect,
    isTransaction: ({ rollback }: Transaction) => typeof rollback === "function",
    query: async (transaction, { parts, values }) =>
      rowsOf(await (transaction ?? db).execute(sql(parts, ...values))),
    transaction: (work) => db.transaction(work),
  });
}
