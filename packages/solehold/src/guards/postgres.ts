/**
 * The guard of a PostgreSQL database. A table keeps the newest fence of every resource. Raising it locks
 * its row until the transaction ends, so the check and the writes of that transaction are one step: an
 * older writer waits for it, and is then refused.
 *
 * Two ways: `withFence` (or `fenceStatement` in a transaction of your own) for writers that take part, and
 * a trigger for tables that nobody may write without a fence.
 */
import { formatFence, keyId } from "../core/index.ts";
import type { Fenced } from "./fenced-resource.ts";
import { StaleFenceError } from "./stale-fence-error.ts";

export const FENCE_TABLE = "solehold_fences";
/** The codes that the trigger raises. */
export const FENCE_MISSING_STATE = "SH001";
export const STALE_FENCE_STATE = "SH002";

export interface SqlStatement {
  readonly text: string;
  readonly values: readonly string[];
}

/** One connection, as of the package pg: not a pool, because a transaction is one connection's. */
export interface PostgresConnection {
  query(text: string, values?: string[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

/** Creates the table of fences. Run it once, or with your migrations. */
export const FENCE_TABLE_SQL = `create table if not exists ${FENCE_TABLE} (
  resource text primary key,
  fence numeric(39, 0) not null
);`;

/**
 * Raises the fence of the resource. No row comes back when a newer one is there: roll back then. It only
 * guards the transaction that it is part of.
 */
export function fenceStatement({ key, fence }: Fenced): SqlStatement {
  return {
    text: `insert into ${FENCE_TABLE} as known (resource, fence) values ($1, $2::numeric)
on conflict (resource) do update set fence = excluded.fence where known.fence <= excluded.fence
returning fence::text`,
    values: [keyId(key), fence.toString()],
  };
}

/** Tells the trigger the fence of this transaction. */
export function fenceSetting({ fence }: Pick<Fenced, "fence">): SqlStatement {
  return { text: "select set_config('solehold.fence', $1, true)", values: [formatFence(fence)] };
}

/** `work` in a transaction that commits only if no newer fence was seen. Throws StaleFenceError otherwise. */
export async function withFence<T>(
  connection: PostgresConnection,
  by: Fenced,
  work: () => Promise<T>,
): Promise<T> {
  await connection.query("begin");
  try {
    const raise = fenceStatement(by);
    const { rows } = await connection.query(raise.text, [...raise.values]);
    if (rows.length === 0) throw new StaleFenceError(by.key, by.fence, await newestOf(connection, by));
    const setting = fenceSetting(by);
    await connection.query(setting.text, [...setting.values]);
    const result = await work();
    await connection.query("commit");
    return result;
  } catch (error) {
    await connection.query("rollback").catch(() => undefined);
    throw error;
  }
}

async function newestOf(connection: PostgresConnection, { key }: Fenced): Promise<bigint> {
  const text = `select fence::text from ${FENCE_TABLE} where resource = $1`;
  const { rows } = await connection.query(text, [keyId(key)]);
  return BigInt(String(rows[0]?.fence ?? "0"));
}

export interface FenceTriggerOptions {
  /** The table to protect, as in SQL: `invoice` or `billing.invoice`. */
  readonly table: string;
  /** The lease that protects it. */
  readonly key: Fenced["key"];
}

const TABLE = /^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$/;

/**
 * SQL that makes the database refuse every insert, update, delete and truncate of the table in a
 * transaction that did not say its fence (`fenceSetting`), or said an older one than the newest seen.
 */
export function fenceTriggerSql({ table, key }: FenceTriggerOptions): string {
  if (!TABLE.test(table))
    throw new RangeError(`table must be a plain name such as billing.invoice, got '${table}'`);
  const resource = `'${keyId(key).replaceAll("'", "''")}'`;
  return `${FENCE_TABLE_SQL}

create or replace function solehold_check_fence() returns trigger language plpgsql as $solehold$
declare
  given text := current_setting('solehold.fence', true);
begin
  if given is null or given = '' then
    raise exception 'writing to % needs the fence of a lease', tg_table_name
      using errcode = '${FENCE_MISSING_STATE}', hint = 'set solehold.fence in the transaction';
  end if;
  insert into ${FENCE_TABLE} as known (resource, fence) values (tg_argv[0], given::numeric)
    on conflict (resource) do update set fence = excluded.fence where known.fence <= excluded.fence;
  if not found then
    raise exception 'the fence % is older than the newest seen for %', given, tg_argv[0]
      using errcode = '${STALE_FENCE_STATE}', hint = 'the lease was lost: stop writing';
  end if;
  return null;
end
$solehold$;

drop trigger if exists solehold_fence on ${table};
create trigger solehold_fence before insert or update or delete or truncate on ${table}
  for each statement execute function solehold_check_fence(${resource});`;
}
