/**
 * What is checked once, when the store is opened: that the server fits, that the table is there (created if it may be)
 * and of this version, and that this role may use it. Each failure says what to do.
 */
import { StoreError } from "../../store/index.ts";
import { isTrue } from "./driver.ts";
import { isMissingTable } from "./failures.ts";
import { MAY_NAME_SERVER } from "./identity.ts";
import type { TableNames } from "./names.ts";
import { configError, type StoreContext } from "./options.ts";
import { schemaStatement, tableStatements } from "./schema.ts";
import { statement } from "./statements.ts";

/** xid8 and pg_snapshot are from this version on. */
const OLDEST_SERVER = 130_000;

/** Whatever could take over: a standby that is connected, or for which a slot keeps the log. */
const HAS_STANDBY =
  "exists (select from pg_replication_slots where slot_type = 'physical') or exists (select from pg_stat_replication r where not exists (select from pg_replication_slots s where s.active_pid = r.pid))";
const IS_ON_DISK =
  "current_setting('fsync') = 'on' and current_setting('full_page_writes') = 'on' and current_setting('synchronous_commit') <> 'off'";
const IS_ON_STANDBYS =
  "current_setting('synchronous_standby_names') <> '' and current_setting('synchronous_commit') in ('on', 'remote_apply')";
const IS_READ_ONLY = "pg_is_in_recovery() or current_setting('transaction_read_only') = 'on'";

export interface Server {
  /** An acknowledged write survives a crash, and every failover that the server's configuration allows. */
  readonly durable: boolean;
  /** Whether this role may ask which server it is. */
  readonly servers: "named" | "unnamed";
}

export async function setUp({ calls, create, names, statements }: StoreContext): Promise<Server> {
  const questions = `select current_setting('server_version_num'), current_setting('server_encoding'), ${IS_READ_ONLY}, (${IS_ON_DISK}) and ((${IS_ON_STANDBYS}) or not (${HAS_STANDBY})), ${MAY_NAME_SERVER}, to_regnamespace('${names.schema}') is not null, (select relpersistence = 'p' from pg_class where oid = to_regclass('${names.table}'))`;
  const [[version, encoding, readOnly, durable, isNamed, hasSchema, isLogged] = []] = await calls.query(
    statement(questions),
    [],
  );
  if (Number(version) < OLDEST_SERVER)
    throw configError(
      `PostgreSQL 13 or newer is needed, this is ${Math.floor(Number(version) / 10_000)}: upgrade it`,
    );
  if (encoding !== "UTF8")
    throw configError(
      `the database's encoding must be UTF8, it is ${encoding}: create one with encoding 'UTF8'`,
    );
  if (isTrue(readOnly)) throw configError("the server is read-only (a standby?): connect to the primary");
  // A write of nothing fails without the table, its columns, or any of the four rights on it.
  const writeNothing = () => calls.query(statements.write, ["{}", "{}", "{}", "{}"]);
  await writeNothing().catch(async (error: unknown) => {
    if (!(error instanceof StoreError && isMissingTable(error)) || create === "never") throw error;
    await calls.query({ name: "", text: creation(names, isTrue(hasSchema) ? "exists" : "missing") }, null);
    await writeNothing();
  });
  return {
    durable: isTrue(durable) && isLogged !== "f" && isLogged !== "false",
    servers: isTrue(isNamed) ? "named" : "unnamed",
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
