/**
 * What is checked once, when the store is opened: that the server fits, that the table is there (created if
 * it may be) and is ours, and that this role may use it. Each failure says what to do.
 */
import { StoreError, type StoreErrorKind } from "../../store/index.ts";
import { COLUMNS } from "./columns.ts";
import { isTrue, type SqlDriver } from "./driver.ts";
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

const COLUMN_ROWS = COLUMN_NAMES.map((name) => `('${name}')`).join(", ");
const PRIVILEGE_ROWS = PRIVILEGES.map((name) => `('${name}')`).join(", ");

/** What is asked of the server, of the schema `n` and of the table `c`. */
const QUESTIONS = {
  serverVersion: "current_setting('server_version_num')",
  encoding: "current_setting('server_encoding')",
  readOnly: "pg_is_in_recovery() or current_setting('transaction_read_only') = 'on'",
  role: "current_user::text",
  hasSchema: "n.oid is not null",
  hasTable: "c.oid is not null",
  durable:
    "current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off' and c.relpersistence = 'p'",
  // It has one parameter more from PostgreSQL 17 on.
  confirms:
    "(select bool_and(has_function_privilege(p.oid, 'EXECUTE')) from pg_proc p where p.proname = 'pg_logical_emit_message')",
  missingColumns: `(select string_agg(v.name, ', ') from (values ${COLUMN_ROWS}) v(name) where not exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = v.name and not a.attisdropped))`,
  denied: `(select string_agg(p.name, ', ') from (values ${PRIVILEGE_ROWS}) p(name) where not has_schema_privilege(n.oid, 'USAGE') or not has_table_privilege(c.oid, p.name))`,
} as const;

type Found = Readonly<Record<keyof typeof QUESTIONS, string | null>>;

export interface SetupResult {
  /** An acknowledged write is on disk, as this server is configured. */
  readonly durable: boolean;
  /** This role may ask when what was written is on disk. */
  readonly confirms: boolean;
}

export async function setUp(
  driver: SqlDriver,
  names: TableNames,
  create: "if-missing" | "never",
): Promise<SetupResult> {
  let found = await inspect(driver, names);
  assertServerFits(found);
  if (!isTrue(found.hasTable)) {
    if (create === "never")
      throw refused(
        "config",
        `table ${names.sqlTable} is missing: run the statements of postgresSchema() once`,
      );
    await driver.script(creation(names, isTrue(found.hasSchema) ? "exists" : "missing"));
    found = await inspect(driver, names);
  }
  assertTableIsOurs(found, names);
  return { durable: isTrue(found.durable), confirms: isTrue(found.confirms) };
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

function assertServerFits(found: Found): void {
  const version = Number(found.serverVersion);
  if (version < OLDEST_SERVER)
    throw refused(
      "config",
      `PostgreSQL 13 or newer is needed, this is ${Math.floor(version / 10_000)}: upgrade it`,
    );
  const { encoding } = found;
  if (encoding !== "UTF8")
    throw refused(
      "config",
      `the database's encoding must be UTF8, it is ${encoding}: create one with encoding 'UTF8'`,
    );
  if (isTrue(found.readOnly))
    throw refused("config", "the server is read-only (a standby?): connect to the primary");
}

function assertTableIsOurs({ missingColumns, denied, role }: Found, { sqlTable }: TableNames): void {
  if (missingColumns !== null)
    throw refused(
      "config",
      `table ${sqlTable} lacks the columns ${missingColumns}: give the store another 'table'`,
    );
  if (denied !== null) {
    throw refused(
      "auth",
      `role ${role} may not ${denied} on ${sqlTable}: grant ${denied} on ${sqlTable} to ${role}`,
    );
  }
}

async function inspect(driver: SqlDriver, { schema, table }: TableNames): Promise<Found> {
  const text = `select ${Object.values(QUESTIONS).join(", ")}
    from (select) one
      left join pg_namespace n on n.nspname = '${schema}'
      left join pg_class c on c.relnamespace = n.oid and c.relname = '${table}' and c.relkind in ('r', 'p')`;
  const [row = []] = await driver.query(statement(text), []);
  const answers = Object.keys(QUESTIONS).map((name, index) => [name, row[index] ?? null]);
  return Object.fromEntries(answers) as Found;
}

function refused(kind: StoreErrorKind, message: string): StoreError {
  return new StoreError(kind, message, { outcome: "not-applied" });
}
