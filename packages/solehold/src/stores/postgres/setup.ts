/**
 * What is checked once, when the store is opened: that the server fits, that the table is there (created if
 * it may be) and is ours, and that this role may use it. Each failure says what to do.
 */
import { StoreError, type StoreErrorKind } from "../contract.ts";
import { COLUMNS } from "./columns.ts";
import { type Row, type SqlDriver, textOf } from "./driver.ts";
import type { TableNames } from "./names.ts";
import {
  CHANGED_COLUMN,
  INSERTED_COLUMN,
  schemaStatement,
  tableStatements,
  VERSION_COLUMN,
} from "./schema.ts";
import { statement } from "./statements.ts";

/** xid8 and pg_snapshot are from this version on. */
const OLDEST_SERVER = 130_000;
const PRIVILEGES = ["SELECT", "INSERT", "UPDATE", "DELETE"];
const COLUMN_NAMES = [...COLUMNS.map(({ name }) => name), VERSION_COLUMN, CHANGED_COLUMN, INSERTED_COLUMN];

export interface SetupResult {
  /** An acknowledged write is on disk, as this server is configured. */
  readonly durable: boolean;
}

export async function setUp(
  driver: SqlDriver,
  names: TableNames,
  create: "if-missing" | "never",
): Promise<SetupResult> {
  const inspect = statement(inspection(names));
  let [found] = await driver.query(inspect, []);
  assertServerFits(found);
  if (textOf(found, "has_table") !== "true") {
    if (create === "never")
      throw refused(
        "config",
        `table ${names.sqlTable} is missing: run the statements of postgresSchema() once`,
      );
    await driver.script(creation(names, textOf(found, "has_schema") === "true" ? "exists" : "missing"));
    [found] = await driver.query(inspect, []);
  }
  assertTableIsOurs(found, names);
  return { durable: textOf(found, "durable") === "true" };
}

/** One client creates, the others wait for it and find it done. */
function creation(names: TableNames, schema: "exists" | "missing"): string {
  return [
    // Some clients print every notice, and "already exists" is no news.
    "set local client_min_messages = warning",
    `select pg_advisory_xact_lock(${names.setupLock})`,
    // Even with "if not exists" this takes a right on the database, which the role may lack.
    ...(schema === "missing" ? [schemaStatement(names)] : []),
    ...tableStatements(names),
  ].join(";\n");
}

function assertServerFits(row: Row | undefined): void {
  const version = Number(textOf(row, "server_version"));
  if (version < OLDEST_SERVER)
    throw refused(
      "config",
      `PostgreSQL 13 or newer is needed, this is ${Math.floor(version / 10_000)}: upgrade it`,
    );
  const encoding = textOf(row, "encoding");
  if (encoding !== "UTF8")
    throw refused(
      "config",
      `the database's encoding must be UTF8, it is ${encoding}: create one with encoding 'UTF8'`,
    );
  if (textOf(row, "read_only") === "true")
    throw refused("config", "the server is read-only (a standby?): connect to the primary");
}

function assertTableIsOurs(row: Row | undefined, { sqlTable }: TableNames): void {
  const missing = textOf(row, "missing_columns") ?? "";
  if (missing !== "")
    throw refused("config", `table ${sqlTable} lacks the columns ${missing}: give the store another 'table'`);
  const denied = textOf(row, "denied") ?? "";
  if (denied !== "") {
    const role = textOf(row, "role");
    throw refused(
      "auth",
      `role ${role} may not ${denied} on ${sqlTable}: grant ${denied} on ${sqlTable} to ${role}`,
    );
  }
}

function inspection({ schema, table }: TableNames): string {
  const columns = COLUMN_NAMES.map((name) => `('${name}')`).join(", ");
  const privileges = PRIVILEGES.map((name) => `('${name}')`).join(", ");
  return `select
    current_setting('server_version_num') as server_version,
    current_setting('server_encoding') as encoding,
    (pg_is_in_recovery() or current_setting('transaction_read_only') = 'on')::text as read_only,
    current_user::text as role,
    (n.oid is not null)::text as has_schema,
    (c.oid is not null)::text as has_table,
    (current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off' and c.relpersistence = 'p')::text as durable,
    (select string_agg(v.name, ', ') from (values ${columns}) v(name) where not exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = v.name and not a.attisdropped)) as missing_columns,
    (select string_agg(p.name, ', ') from (values ${privileges}) p(name) where not has_schema_privilege(n.oid, 'USAGE') or not has_table_privilege(c.oid, p.name)) as denied
  from (select) one
    left join pg_namespace n on n.nspname = '${schema}'
    left join pg_class c on c.relnamespace = n.oid and c.relname = '${table}' and c.relkind in ('r', 'p')`;
}

function refused(kind: StoreErrorKind, message: string): StoreError {
  return new StoreError(kind, message, { outcome: "not-applied" });
}
