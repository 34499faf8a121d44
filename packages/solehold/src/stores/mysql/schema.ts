/**
 * The table, and a view of it for people. Names and values are bytes: no collation folds or pads them, and no character
 * set of a connection changes them.
 */
import { assertTable } from "./options.ts";

const columnOf = (line: number): string =>
  `substring_index(substring_index(convert(value using utf8mb4), '\n', ${line}), '\n', -1)`;
const timeOf = (line: number): string => `from_unixtime(nullif(${columnOf(line)}, '') / 1000)`;

export function tableSql(table: string): string {
  return `create table if not exists \`${table}\` (
  tenant varbinary(64) not null,
  name varbinary(1024) not null,
  version varbinary(64) not null,
  value mediumblob not null,
  written_ms bigint unsigned not null,
  primary key (tenant, name)
) engine = InnoDB`;
}

/** The lines of a record, as core's codec writes them. */
export function viewSql(table: string): string {
  return `create view \`${table}_view\` as select
  convert(tenant using utf8mb4) as tenant,
  convert(name using utf8mb4) as name,
  ${columnOf(5)} as holder,
  ${columnOf(15)} as state,
  ${columnOf(6)} as purpose,
  ${columnOf(9)} as generation,
  ${timeOf(11)} as granted_at,
  ${timeOf(12)} as renewed_at,
  ${timeOf(13)} as expires_at,
  ${timeOf(14)} as ended_at,
  ${columnOf(25)} as note
from \`${table}\` where tenant <> ''`;
}

/** What the store creates, for those who would rather create it themselves. */
export function mysqlSchema(table = "solehold_leases"): string {
  assertTable(table);
  return `${tableSql(table)};\n${viewSql(table)};\n`;
}
