/** The guard for the package `postgres` (postgres.js). */
import { numbered, type SqlRow } from "./sql-fence.ts";
import { SqlGuard } from "./sql-guard.ts";

/** `sql` of postgres.js, as far as it is used. */
export interface PostgresJsSql {
  unsafe(text: string, values?: string[]): PromiseLike<readonly SqlRow[]>;
}

/** `sql` inside `sql.begin(async (sql) => …)`. */
export interface PostgresJsTransaction extends PostgresJsSql {
  savepoint: unknown;
}

export interface PostgresJsDatabase<Transaction extends PostgresJsTransaction> extends PostgresJsSql {
  /** Both forms, because the compiler infers `Transaction` from the last one. */
  readonly begin: {
    (work: (transaction: Transaction) => Promise<unknown>): Promise<unknown>;
    (options: string, work: (transaction: Transaction) => Promise<unknown>): Promise<unknown>;
  };
}

export function postgresJsGuard<Transaction extends PostgresJsTransaction>(
  sql: PostgresJsDatabase<Transaction>,
): SqlGuard<Transaction> {
  return new SqlGuard({
    dialect: "postgres",
    isTransaction: ({ savepoint }: Transaction) => typeof savepoint === "function",
    query: async (transaction, statement) =>
      await (transaction ?? sql).unsafe(numbered(statement), [...statement.values]),
    transaction: (work) => sql.begin(work),
  });
}
