/**
 * The table that the store keeps its records in, as SQL that can be run any number of times.
 *
 * The primary key (tenant, name) lets the database itself refuse a second row of a key, and so a second active lease,
 * whatever any client does. There is no other index: a renewal changes no indexed column, and `fillfactor` leaves space
 * in each page, so that PostgreSQL updates the row in place (heap-only).
 *
 * `value` is the record in core's text form, one field a line. Collation "C" compares bytes: prefixes use the index, and
 * the order is the same everywhere.
 */
import { type TableNames, type TableOptions, tableNames } from "./names.ts";

/** The statements that `openPostgresStore` runs on first use, for those who would rather run them by hand. */
export function postgresSchema(options: TableOptions = {}): string {
  const names = tableNames(options);
  return `${[schemaStatement(names), ...tableStatements(names)].join(";\n\n")};\n`;
}

export function schemaStatement({ schema }: TableNames): string {
  return `create schema if not exists ${schema}`;
}

export function tableStatements({ table, view }: TableNames): readonly string[] {
  return [
    `create table if not exists ${table} (
  tenant text collate "C" not null,
  name text collate "C" not null,
  version uuid not null default gen_random_uuid(),
  value text not null,
  primary key (tenant, name)
) with (fillfactor = 70)`,
    viewStatement(table, view),
    `comment on table ${table} is
  'Leases of Solehold, one row a key; read them in the view. After a change by hand set version = gen_random_uuid(), or a client may overwrite it.'`,
  ];
}

/**
 * For people and reports, in the words of the work-order gate. EXPIRED is a matter of the clock. A damaged field shows
 * as null; the store reports the row as corrupt.
 */
function viewStatement(table: string, view: string): string {
  const number = (field: number): string => `substring(f[${field}] from '^[0-9]{1,20}$')::numeric`;
  const instant = (field: number): string => `to_timestamp(${number(field)}::double precision / 1000)`;
  // As `fenceOf`: the base term adds nothing.
  const fence = `(case when ${number(8)} > 1 then ${number(8)} else 0 end * 18446744073709551616 + ${number(9)})`;
  return `create or replace view ${view} as select
  tenant || '/' || name || '@' || ${fence} as lease_id,
  tenant as tenant_id, name as work_order_id, f[5] as lease_owner_id, f[7] as lease_token,
  case when f[15] <> 'held' then upper(f[15])
    when ${number(13)} <= extract(epoch from clock_timestamp()) * 1000 then 'EXPIRED'
    else 'ACTIVE' end as lease_state,
  ${instant(13)} as lease_expires_at,
  ${instant(11)} as acquired_at,
  ${instant(12)} as renewed_at,
  ${instant(14)} as released_at,
  nullif(split_part(f[22], ' ', 1), '') as idempotency_key,
  ${number(8)} as term, ${number(9)} as generation, f[6] as purpose, f[25] as note, version
from (select tenant, name, version, string_to_array(value, E'\\n') as f from ${table}) as leases
where tenant <> '' and name not like '$%'`;
}
