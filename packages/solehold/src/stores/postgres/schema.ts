/**
 * The table that the store keeps its records in, as SQL that can be run any number of times.
 *
 * The primary key (tenant_id, work_order_id) lets the database itself refuse a second row of a key, and so
 * a second ACTIVE one, whatever any client does. A further unique index over the ACTIVE rows would say
 * nothing more, but every grant and every release would have to enter and leave it, which costs half as
 * much again per write and ends PostgreSQL's heap-only updates.
 *
 * There is no check constraint: PostgreSQL prepares its expression anew for every statement, which took a
 * fifth of a lone write's time. A row that makes no sense is reported when it is read.
 *
 * The index of holders keeps names in a collation of another name and the same order. Otherwise the planner,
 * who knows nothing yet of a new table, may take it for looking up a key, and then reads all keys of a tenant.
 *
 * `fillfactor` leaves room in each page for those heap-only updates: a renewal then touches no index.
 */
import { COLUMNS } from "./columns.ts";
import { type TableNames, type TableOptions, tableNames } from "./names.ts";

/** "C" compares bytes: prefixes use the index, and the order is the same on every server. */
const TEXT_KEY = 'text collate "C"';
const KEY_COLUMNS = new Set(["tenant_id", "work_order_id", "lease_owner_id"]);

/** Compares bytes, as "C" does; only whoever names it uses the index of holders. */
export const HOLDER_COLLATION = 'collate "POSIX"';

/** Beside the record's columns: what only the store itself reads. */
export const VERSION_COLUMN = "version";
export const CHANGED_COLUMN = "changed_xid";
export const INSERTED_COLUMN = "inserted_xid";

/** The statements that `openPostgresStore` runs on first use, for whoever would rather run them by hand. */
export function postgresSchema(options: TableOptions = {}): string {
  const names = tableNames(options);
  return `${[schemaStatement(names), ...tableStatements(names)].join(";\n\n")};\n`;
}

export function schemaStatement(names: TableNames): string {
  return `create schema if not exists ${names.sqlSchema}`;
}

export function tableStatements(names: TableNames): readonly string[] {
  return [
    tableStatement(names),
    `create index if not exists ${names.sqlHolderIndex}\n  on ${names.sqlTable} (lease_owner_id, work_order_id ${HOLDER_COLLATION})`,
    `drop index if exists ${names.sqlFormerIndex}`,
    viewStatement(names),
    `comment on table ${names.sqlTable} is\n  'Leases of Solehold. One row a key; instants are milliseconds of this server''s clock. After a change by hand set version = gen_random_uuid(), or a client may overwrite it unseen.'`,
  ];
}

function tableStatement(names: TableNames): string {
  const columns = COLUMNS.map(({ name, type, nulls }) => {
    const sqlType = KEY_COLUMNS.has(name) ? TEXT_KEY : type;
    return `  ${name} ${sqlType}${nulls === "allowed" ? "" : " not null"}`;
  });
  return [
    `create table if not exists ${names.sqlTable} (`,
    `${columns.join(",\n")},`,
    `  ${VERSION_COLUMN} uuid not null default gen_random_uuid(),`,
    `  ${CHANGED_COLUMN} xid8 not null default pg_current_xact_id(),`,
    `  ${INSERTED_COLUMN} xid8 not null default pg_current_xact_id(),`,
    "  primary key (tenant_id, work_order_id)",
    ") with (fillfactor = 70)",
  ].join("\n");
}

/** For people and reports: timestamps, an id per grant, and EXPIRED, which is a matter of the clock. */
function viewStatement(names: TableNames): string {
  const instant = (column: string, name: string): string =>
    `  to_timestamp(${column}::double precision / 1000) as ${name}`;
  return [
    `create or replace view ${names.sqlView} as select`,
    "  work_order_id || '#' || term || '.' || generation as lease_id,",
    "  tenant_id,\n  work_order_id,\n  lease_owner_id,\n  lease_token_hash as lease_token,",
    "  case when lease_state = 'ACTIVE' and lease_expires_at_ms <= extract(epoch from clock_timestamp()) * 1000",
    "    then 'EXPIRED' else lease_state end as lease_state,",
    `${instant("lease_expires_at_ms", "lease_expires_at")},`,
    `${instant("acquired_at_ms", "acquired_at")},`,
    `${instant("renewed_at_ms", "renewed_at")},`,
    `${instant("released_at_ms", "released_at")},`,
    "  idempotency_key_hash as idempotency_key,",
    "  term,\n  generation,\n  details",
    `from ${names.sqlTable}\nwhere work_order_id not like '$%'`,
  ].join("\n");
}
