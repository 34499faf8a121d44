/** The guard for Knex, over `pg` and `mysql2`. */
import { questioned, rowsOf } from "./sql-fence.ts";
import { SqlGuard } from "./sql-guard.ts";

/** A Knex or its transaction, as far as it is used. */
export interface KnexExecutor {
  raw(text: string, values: readonly string[]): PromiseLike<unknown>;
  isTransaction?: boolean;
}

export interface KnexDatabase<Transaction> extends KnexExecutor {
  transaction(work: (transaction: Transaction) => Promise<void>): Promise<unknown>;
}

export interface KnexGuardOptions<Transaction> {
  readonly knex: KnexDatabase<Transaction>;
  readonly dialect: "postgres" | "mysql";
}

export function knexGuard<Transaction extends KnexExecutor & { commit: unknown }>({
  knex,
  dialect,
}: KnexGuardOptions<Transaction>): SqlGuard<Transaction> {
  return new SqlGuard({
    dialect,
    isTransaction: ({ isTransaction }: Transaction) => isTransaction === true,
    query: async (transaction, statement) =>
      rowsOf(await (transaction ?? knex).raw(questioned(statement), statement.values)),
    transaction: (work) => knex.transaction(work),
  });
}
