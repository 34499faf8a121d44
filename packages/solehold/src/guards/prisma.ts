/** The guard for Prisma, over PostgreSQL and MySQL. */
import type { SqlRow } from "./sql-fence.ts";
import { SqlGuard } from "./sql-guard.ts";

/** A PrismaClient or its transaction, as far as it is used. */
export interface PrismaExecutor {
  $queryRaw(parts: TemplateStringsArray, ...values: unknown[]): PromiseLike<unknown>;
}

/** Only a client can connect. A transaction can begin another one in itself, so `$transaction` tells nothing. */
export interface PrismaTransaction extends PrismaExecutor {
  readonly $connect?: never;
}

export interface PrismaDatabase<Transaction> extends PrismaExecutor {
  $transaction(work: (transaction: Transaction) => Promise<void>): Promise<unknown>;
}

export interface PrismaGuardOptions<Transaction> {
  readonly prisma: PrismaDatabase<Transaction>;
  readonly dialect: "postgres" | "mysql";
}

export function prismaGuard<Transaction extends PrismaTransaction>({
  prisma,
  dialect,
}: PrismaGuardOptions<Transaction>): SqlGuard<Transaction, PrismaTransaction> {
  return new SqlGuard<Transaction, PrismaTransaction>({
    dialect,
    isTransaction: (candidate) => !("$connect" in candidate),
    query: async (transaction, { parts, values }) =>
      (await (transaction ?? prisma).$queryRaw(parts, ...values)) as readonly SqlRow[],
    transaction: (work) => prisma.$transaction(work),
  });
}
