/**
 * What is checked once, when the store is opened: that the server fits, that the table is there (created if it may be)
 * and of this version, and that this role may use it. Each failure says what to do.
 */
import { StoreError } from "../../store/index.ts";
import { configError } from "../support/options.ts";
import type { Calls } from "./calls.ts";
import { isTrue } from "./driver.ts";
import { isMissingTable } from "./failures.ts";
import type { TableNames } from "./names.ts";
import type { StoreContext } from "./options.ts";
import { schemaStatement, tableStatements } from "./schema.ts";
import { SERVER_QUESTIONS, type ServerQuestions, statement, UNANSWERED_QUESTIONS } from "./statements.ts";

/** gen_random_uuid() and pg_current_snapshot() are from this version on. */
const OLDEST_SERVER = 130_000;

const IS_READ_ONLY = "pg_is_in_recovery() or current_setting('transaction_read_only') = 'on'";
const IS_ON_DISK =
  "current_setting('fsync') = 'on' and current_setting('full_page_writes') = 'on' and current_setting('synchronous_commit') <> 'off'";
const IS_ON_STANDBYS =
  "current_setting('synchronous_standby_names') <> '' and current_setting('synchronous_commit') in ('on', 'remote_apply')";
/** Whatever could take over: a standby that is connected, or for which a slot keeps the log. */
const HAS_STANDBY =
  "exists (select from pg_replication_slots where slot_type = 'physical') or exists (select from pg_stat_replication r where not exists (select from pg_replication_slots s where s.active_pid = r.pid))";

export interface Server {
  /** An acknowledged write survives a crash, and every failover that the server's configuration allows. */
  readonly durable: boolean;
  readonly hasSchema: boolean;
  readonly questions: ServerQuestions;
}

export async function inspectServer(calls: Calls, { schema, table }: TableNames): Promise<Server> {
  const isLogged = `coalesce((select relpersistence = 'p' from pg_class where oid = to_regclass('${table}')), true)`;
  const isDurable = `${IS_ON_DISK} and (${IS_ON_STANDBYS} or not (${HAS_STANDBY})) and ${isLogged}`;
  const text = `select current_setting('server_version_num'), current_setting('server_encoding'), ${IS_READ_ONLY}, ${isDurable}, to_regnamespace('${schema}') is not null`;
  const [[version, encoding, readOnly, durable, hasSchema] = []] = await calls.query(statement(text), []);
  const major = Math.floor(Number(version) / 10_000);
  if (Number(version) < OLDEST_SERVER)
    throw configError(`PostgreSQL 13 or newer is needed, this is ${major}: upgrade it`);
  if (encoding !== "UTF8")
    throw configError(
      `the database's encoding must be UTF8, it is ${encoding}: create one with encoding 'UTF8'`,
    );
  if (isTrue(readOnly)) throw configError("the server is read-only (a standby?): connect to the primary");
  const asking = calls.query(statement(`select ${Object.values(SERVER_QUESTIONS).join(", ")}`), []);
  // Everybody may ask, unless somebody took the right away; some services do not know the answers.
  const questions = await asking.then(() => SERVER_QUESTIONS, withoutAnswers);
  return { durable: isTrue(durable), hasSchema: isTrue(hasSchema), questions };
}

function withoutAnswers(error: unknown): ServerQuestions {
  if (error instanceof StoreError && (error.kind === "auth" || error.kind === "internal"))
    return UNANSWERED_QUESTIONS;
  throw error;
}

export async function ensureTable({ calls, create, names, server, statements }: StoreContext): Promise<void> {
  // A write of nothing fails without the table, its columns, or any of the four rights on it.
  const writeNothing = () => calls.query(statements.write, ["{}", "{}", "{}", "{}"]);
  try {
    await writeNothing();
  } catch (error) {
    if (!isMissingTable(error) || create === "never") throw error;
    const script = [
      // Some clients print every notice, such as "already exists".
      "set local client_min_messages = warning",
      // One client creates; the others wait for it and find it done.
      `select pg_advisory_xact_lock(${names.setupLock})`,
      // Even with "if not exists" this takes a right on the database, which the role may lack.
      ...(server.hasSchema ? [] : [schemaStatement(names)]),
      ...tableStatements(names),
    ];
    await calls.query({ name: "", text: script.join(";\n") }, null);
    await writeNothing();
  }
}
