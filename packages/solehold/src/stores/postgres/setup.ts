/**
 * What is checked once, when the store is opened: that the server fits, that the table is there (created if it may be)
 * and is ours, and that this role may use it. Each failure says what to do.
 */
import { StoreError, type StoreErrorKind } from "../../store/index.ts";
import type { Calls } from "./calls.ts";
import { isTrue } from "./driver.ts";
import { MAY_NAME_SERVER } from "./identity.ts";
import type { TableNames } from "./names.ts";
import { bad } from "./options.ts";
import { COLUMNS, schemaStatement, tableStatements } from "./schema.ts";
import { statement } from "./statements.ts";

/** xid8 and pg_snapshot are from this version on. */
const OLDEST_SERVER = 130_000;
const PRIVILEGES = ["SELECT", "INSERT", "UPDATE", "DELETE"];

const COLUMN_ROWS = COLUMNS.map((name) => `('${name}')`).join(", ");
const PRIVILEGE_ROWS = PRIVILEGES.map((name) => `('${name}')`).join(", ");

/** Whoever could take over as a server: a standby that is connected, or has a slot that waits for it. */
const HAS_STANDBY =
  "exists (select from pg_replication_slots where slot_type = 'physical') or exists (select from pg_stat_replication r where not exists (select from pg_replication_slots s where s.active_pid = r.pid))";

/** What is asked of the server, of the schema `n` and of the table `c`. */
const QUESTIONS = {
  serverVersion: "current_setting('server_version_num')",
  encoding: "current_setting('server_encoding')",
  readOnly: "pg_is_in_recovery() or current_setting('transaction_read_only') = 'on'",
  role: "current_user::text",
  hasSchema: "n.oid is not null",
  hasTable: "c.oid is not null",
  onDisk:
    "current_setting('fsync') = 'on' and current_setting('full_page_writes') = 'on' and current_setting('synchronous_commit') <> 'off' and c.relpersistence = 'p'",
  onStandbys:
    "current_setting('synchronous_standby_names') <> '' and current_setting('synchronous_commit') in ('on', 'remote_apply')",
  hasStandby: HAS_STANDBY,
  mayNameServer: MAY_NAME_SERVER,
  missingColumns: `(select string_agg(v.name, ', ') from (values ${COLUMN_ROWS}) v(name) where not exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = v.name and not a.attisdropped))`,
  denied: `(select string_agg(p.name, ', ') from (values ${PRIVILEGE_ROWS}) p(name) where not has_schema_privilege(n.oid, 'USAGE') or not has_table_privilege(c.oid, p.name))`,
} as const;

type Found = Readonly<Record<keyof typeof QUESTIONS, string | null>>;

export interface SetupResult {
  /** An acknowledged write survives a crash, and every failover that this server's configuration allows. */
  readonly durable: boolean;
  /** Whether this role may ask for the server's name. */
  readonly servers: "named" | "unnamed";
}

export async function setUp(
  calls: Calls,
  names: TableNames,
  create: "if-missing" | "never",
): Promise<SetupResult> {
  let found = await inspect(calls, names);
  assertServerFits(found);
  if (!isTrue(found.hasTable)) {
    if (create === "never")
      throw bad(`table ${names.sqlTable} is missing: run the statements of postgresSchema() once`);
    await calls.script(creation(names, isTrue(found.hasSchema) ? "exists" : "missing"));
    found = await inspect(calls, names);
  }
  assertTableIsOurs(found, names);
  const survivesFailover = isTrue(found.onStandbys) || !isTrue(found.hasStandby);
  return {
    durable: isTrue(found.onDisk) && survivesFailover,
    servers: isTrue(found.mayNameServer) ? "named" : "unnamed",
  };
}

/** One client creates; the others wait for it and find it done. */
function creation(names: TableNames, schema: "exists" | "missing"): string {
  return [
    // Some clients print every notice, such as "already exists".
    "set local client_min_messages = warning",
    `select pg_advisory_xact_lock(${names.setupLock})`,
    // Even with "if not exists" this takes a right on the database, which the role may lack.
    ...(schema === "missing" ? [schemaStatement(names)] : []),
    ...tableStatements(names),
  ].join(";\n");
}

function assertServerFits({ serverVersion, encoding, readOnly }: Found): void {
  const version = Number(serverVersion);
  if (version < OLDEST_SERVER)
    throw bad(`PostgreSQL 13 or newer is needed, this is ${Math.floor(version / 10_000)}: upgrade it`);
  if (encoding !== "UTF8")
    throw bad(`the database's encoding must be UTF8, it is ${encoding}: create one with encoding 'UTF8'`);
  if (isTrue(readOnly)) throw bad("the server is read-only (a standby?): connect to the primary");
}

function assertTableIsOurs({ missingColumns, denied, role }: Found, { sqlTable }: TableNames): void {
  if (missingColumns !== null)
    throw bad(
      `table ${sqlTable} lacks the columns ${missingColumns}: it is somebody else's or of an earlier version; give the store another 'table'`,
    );
  if (denied !== null)
    throw refused(
      "auth",
      `role ${role} may not ${denied} on ${sqlTable}: grant ${denied} on ${sqlTable} to ${role}`,
    );
}

async function inspect(calls: Calls, { schema, table }: TableNames): Promise<Found> {
  const text = `select ${Object.values(QUESTIONS).join(", ")}
    from (select) one
      left join pg_namespace n on n.nspname = '${schema}'
      left join pg_class c on c.relnamespace = n.oid and c.relname = '${table}' and c.relkind in ('r', 'p')`;
  const [row = []] = await calls.query(statement(text), []);
  const answers = Object.keys(QUESTIONS).map((name, index) => [name, row[index] ?? null]);
  return Object.fromEntries(answers) as Found;
}

function refused(kind: StoreErrorKind, message: string): StoreError {
  return new StoreError(kind, message, { outcome: "not-applied" });
}
