/**
 * A trigger for PostgreSQL: nobody writes the table without a fence, also those that do not know of guards.
 * Each statement raises the fence as `SqlGuard` does; the transaction says its fence in a setting.
 */
import { formatFence, keyId } from "../core/index.ts";
import type { Fenced } from "./fenced-resource.ts";
import { FENCE_TABLE_SQL, type SqlStatement, statement } from "./sql-fence.ts";

/** The codes that the trigger raises. */
export const FENCE_MISSING_STATE = "SH001";
export const STALE_FENCE_STATE = "SH002";

/** Says the fence of this transaction to the trigger. Guards do it. */
export function fenceSetting({ fence }: Pick<Fenced, "fence">): SqlStatement {
  return statement`select set_config('solehold.fence', ${formatFence(fence)}, true) as fence, pg_current_xact_id_if_assigned() is not null as in_transaction`;
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
  return `${FENCE_TABLE_SQL.postgres};

create or replace function solehold_check_fence() returns trigger language plpgsql as $solehold$
declare
  given text := current_setting('solehold.fence', true);
begin
  if given is null or given = '' then
    raise exception 'writing to % needs the fence of a lease', tg_table_name
      using errcode = '${FENCE_MISSING_STATE}', hint = 'set solehold.fence in the transaction';
  end if;
  insert into solehold_fences as known (resource, fence) values (tg_argv[0], given::numeric)
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
