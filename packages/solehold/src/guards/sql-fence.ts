/**
 * The fence in a SQL database. A table keeps the newest fence of every resource. Raising it locks its row
 * until the transaction ends, so the raise and the writes of that transaction are one step: an older writer
 * waits for it, and is then refused.
 *
 * This is all the SQL there is; the guards differ in how they run it.
 */
import { formatFence, keyId, parseFence } from "../core/index.ts";
import type { Fenced } from "./fenced-resource.ts";
import { StaleFenceError } from "./stale-fence-error.ts";

export type SqlDialect = "postgres" | "mysql" | "sqlite";

/** Text with values between its parts, as a template tag takes them. */
export interface SqlStatement {
  readonly parts: TemplateStringsArray;
  readonly values: readonly string[];
}

export type SqlRow = Readonly<Record<string, unknown>>;

/**
 * Creates the table: `createTable()` of a guard does, or your migrations. Names of resources are compared
 * byte by byte. SQLite has no numbers of 128 bits: fences are text of equal length there.
 */
export const FENCE_TABLE_SQL: Readonly<Record<SqlDialect, string>> = {
  postgres: `create table if not exists solehold_fences (resource text primary key, fence numeric(39, 0) not null)`,
  mysql: `create table if not exists solehold_fences (resource varbinary(1100) primary key, fence decimal(39, 0) not null) engine = InnoDB`,
  sqlite: `create table if not exists solehold_fences (resource text primary key, fence text not null)`,
};

/** Raises the fence and never lowers it. The last statement returns the newest: the caller's, or a newer one. */
export function raiseStatements(dialect: SqlDialect, by: Fenced): readonly SqlStatement[] {
  const resource = keyId(by.key);
  const fence = formatFence(by.fence);
  if (dialect === "postgres")
    return [
      statement`insert into solehold_fences as known (resource, fence) values (${resource}, ${fence}::numeric)
on conflict (resource) do update set fence = greatest(known.fence, excluded.fence) returning fence::text as fence`,
    ];
  if (dialect === "sqlite")
    return [
      statement`insert into solehold_fences as known (resource, fence) values (${resource}, ${fence})
on conflict (resource) do update set fence = max(known.fence, excluded.fence) returning fence`,
    ];
  // No `returning` in MySQL, and counts of rows depend on how the client connected. A locking read shows
  // the row as it is now, also to a transaction whose snapshot is older.
  return [
    statement`insert into solehold_fences (resource, fence) values (${resource}, cast(${fence} as decimal(39, 0)))
on duplicate key update fence = greatest(fence, cast(${fence} as decimal(39, 0)))`,
    statement`select cast(fence as char) as fence from solehold_fences where resource = ${resource} for update`,
  ];
}

/** Throws StaleFenceError when the database has a newer fence. */
export function assertNewest(by: Fenced, row: SqlRow | undefined): void {
  const newest = parseFence(String(row?.fence));
  if (newest === null)
    throw new Error(
      `raising the fence returned ${JSON.stringify(row)}, not the newest fence: is the dialect right?`,
    );
  if (newest > by.fence) throw new StaleFenceError(by.key, by.fence, newest);
}

const MISSING_TABLE = new Set<unknown>(["42P01", "ER_NO_SUCH_TABLE"]);
/** SQLite has no code for it, and Prisma one code for every error of a raw query. */
const MISSING_TABLE_MESSAGE = /no such table: solehold_fences|\bsolehold_fences["'] does(n't| not) exist/;

/** Says what to do about a missing table; other errors stay as they are. */
export function explained(error: unknown): unknown {
  // Some packages wrap the error of the driver.
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as { readonly code?: unknown };
    if (MISSING_TABLE.has(code) || MISSING_TABLE_MESSAGE.test(cause.message))
      return new Error(
        "the table solehold_fences is missing: call createTable() of the guard once, or put FENCE_TABLE_SQL into your migrations",
        { cause: error },
      );
  }
  return error;
}

export function notInTransaction(what: string): TypeError {
  return new TypeError(
    `fenceTransaction needs an open transaction, got ${what}, which commits each statement by itself: pass what your transaction runs on, or use withFence`,
  );
}

/** `values ($1, $2)` */
export function numbered({ parts }: SqlStatement): string {
  return parts.reduce((text, part, index) => `${text}$${index}${part}`);
}

/** `values (?, ?)` */
export function questioned({ parts }: SqlStatement): string {
  return parts.join("?");
}

export function statement(parts: TemplateStringsArray, ...values: readonly string[]): SqlStatement {
  return { parts, values };
}

/** Rows as clients of PostgreSQL (`{ rows }`, or an array of them) and MySQL (`[rows, columns]`) return them. */
export function rowsOf(result: unknown): readonly SqlRow[] {
  if (!Array.isArray(result)) return (result as { readonly rows: readonly SqlRow[] }).rows;
  return Array.isArray(result[0]) ? result[0] : result;
}
