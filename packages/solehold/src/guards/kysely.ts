/** The guard for Kysely, over any of its PostgreSQL, MySQL and SQLite dialects. */
import type { SqlDialect, SqlRow } from "./sql-fence.ts";
import { SqlGuard } from "./sql-guard.ts";

/** A Kysely, as far as it is used. */
export interface KyselyDatabase<Transaction> {
  transaction(): { execute(work: (transaction: Transaction) => Promise<void>): Promise<unknown> };
}

/** The tag `sql` of the package kysely. */
export type KyselySql<Executor> = (
  parts: TemplateStringsArray,
  ...values: unknown[]
) => { execute(executor: Executor): Promise<{ readonly rows: readonly unknown[] }> };

export interface KyselyGuardOptions<Transaction, Executor> {
  readonly db: KyselyDatabase<Transaction> & Executor;
  /** `import { sql } from "kysely"` */
  readonly sql: KyselySql<Executor>;
  readonly dialect: SqlDialect;
}

export function kyselyGuard<Executor, Transaction extends Executor & { readonly isTransaction: true }>({
  db,
  sql,
  dialect,
}: KyselyGuardOptions<Transaction, Executor>): SqlGuard<Transaction> {
  return new SqlGuard({
    dialect,
    isTransaction: (candidate: Transaction) => candidate.isTransaction === true,
    query: async (transaction, { parts, values }) =>
      (await sql(parts, ...values).execute(transaction ?? db)).rows as readonly SqlRow[],
    transaction: (work) => db.transaction().execute(work),
  });
}
