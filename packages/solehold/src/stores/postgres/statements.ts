/**
 * The SQL of reads and conditional writes. Every statement stands alone: it is its own transaction, so it
 * works behind a pooler, and all its rows commit together.
 *
 * Two writers of the same rows never wait for each other in a circle:
 * - all writes of one statement take their rows in order of key (inserts by `order by`, updates and deletes
 *   by locking first, in order: the join of an update may visit rows in any order);
 * - creations travel apart from updates and deletes. A creation can wait for a row that another statement
 *   has changed; mixed into one statement, two batches could each hold what the other one waits for.
 *
 * A write that finds another version changes nothing and returns no row. What is current then is read by a
 * second statement: the snapshot of the first may be older than the version that it lost to.
 */
import { COLUMNS, type Column } from "./columns.ts";
import { digest, type TableNames } from "./names.ts";
import { CHANGED_COLUMN, VERSION_COLUMN } from "./schema.ts";
import { NULL_MARK_SQL, SEPARATOR_SQL } from "./sql-text.ts";

export interface Statement {
  /** Unique for the text, so that stores of several tables can share a pool. */
  readonly name: string;
  readonly text: string;
}

export function statement(text: string): Statement {
  return { name: `solehold_${digest(text).slice(0, 24)}`, text };
}

/** Every value is sent as text and comes back inside a text: no client's type parser is involved. */
export const NOW_MS = "floor(extract(epoch from clock_timestamp()) * 1000)::bigint";

const NAMES = COLUMNS.map(({ name }) => name);
const KEY_COLUMNS = COLUMNS.slice(0, 2);
const CHANGEABLE = NAMES.slice(2);
const EXPECTED_PARAMETER = NAMES.length + 1;
const ORDER = "tenant_id, work_order_id";

export interface Statements {
  readonly clock: Statement;
  readonly readOne: Statement;
  readonly readMany: Statement;
  readonly insertOne: Statement;
  readonly updateOne: Statement;
  readonly deleteOne: Statement;
  readonly insertMany: Statement;
  readonly updateMany: Statement;
  readonly deleteMany: Statement;
  readonly notify: Statement;
}

/** The row as one text, in the order that `storedRecordFrom` reads. */
export function rowText(alias: string): string {
  const columns = [VERSION_COLUMN, ...NAMES].map((name) => `${alias}.${name}`);
  return `concat(${columns.join(`, ${SEPARATOR_SQL}, `)})`;
}

export function statementsFor(names: TableNames): Statements {
  const { sqlTable: table } = names;
  const parameters = COLUMNS.map((_, index) => parameter(index)).join(", ");
  const answer = answerOf(names);
  const changed = `${VERSION_COLUMN} = gen_random_uuid(), ${CHANGED_COLUMN} = pg_current_xact_id()`;
  const assign = (source: (name: string, index: number) => string): string =>
    CHANGEABLE.map((name, index) => `${name} = ${source(name, index)}`).join(", ");

  return {
    clock: statement(`select concat(${NOW_MS}) as reply`),
    readOne: statement(
      `select concat_ws(${SEPARATOR_SQL}, ${NOW_MS}, (select ${rowText("t")} from ${table} t where t.tenant_id = $1 and t.work_order_id = $2)) as reply`,
    ),
    readMany: statement(
      `select concat_ws(${SEPARATOR_SQL}, (select ${NOW_MS}), k.place, (select ${rowText("t")} from ${table} t where t.tenant_id = k.tenant_id and t.work_order_id = k.work_order_id)) as reply from unnest($1::text[], $2::text[]) with ordinality as k(${ORDER}, place)`,
    ),
    insertOne: statement(
      `insert into ${table} as t (${NAMES.join(", ")}) values (${parameters}) on conflict do nothing ${answer.one}`,
    ),
    updateOne: statement(
      `update ${table} as t set ${assign((_, index) => parameter(index + 2))}, ${changed} where t.tenant_id = $1 and t.work_order_id = $2 and t.${VERSION_COLUMN} = $${EXPECTED_PARAMETER} ${answer.one}`,
    ),
    deleteOne: statement(
      `delete from ${table} as t where t.tenant_id = $1 and t.work_order_id = $2 and t.${VERSION_COLUMN} = $3 ${answer.one}`,
    ),
    insertMany: statement(
      `insert into ${table} as t (${NAMES.join(", ")}) select ${fields(COLUMNS)} from ${ROWS} order by s.f[1] collate "C", s.f[2] collate "C" on conflict do nothing ${answer.many}`,
    ),
    updateMany: statement(
      `${lockInOrder(table, COLUMNS)} update ${table} as t set ${assign((name) => `w.${name}`)}, ${changed} from wanted w where ${LOCKED_AND_MATCHING} ${answer.many}`,
    ),
    deleteMany: statement(
      `${lockInOrder(table, KEY_COLUMNS)} delete from ${table} as t using wanted w where ${LOCKED_AND_MATCHING} ${answer.many}`,
    ),
    notify: statement(
      `select pg_notify('${names.channel}', p.payload) from unnest($1::text[]) as p(payload)`,
    ),
  };
}

/** JSON is sent as text and cast by the server: some client libraries would encode it a second time. */
function parameter(index: number): string {
  const type = COLUMNS[index]?.type ?? "text";
  return type === "json" ? `$${index + 1}::text::json` : `$${index + 1}`;
}

/** The rows of a batch, cut into their fields once. */
const ROWS = `(select string_to_array(u.row, ${SEPARATOR_SQL}, ${NULL_MARK_SQL}) as f from unnest($1::text[]) as u(row) offset 0) s`;

function fields(columns: readonly Column[]): string {
  return columns
    .map(({ name, type }, index) => `s.f[${index + 1}]${type === "text" ? "" : `::${type}`} as ${name}`)
    .join(", ");
}

/** Locks what will be written, in order of key: the join of the write itself may visit rows in any order. */
function lockInOrder(table: string, columns: readonly Column[]): string {
  const wanted = `select ${fields(columns)}, s.f[${columns.length + 1}]::uuid as expected from ${ROWS}`;
  return `with wanted as materialized (${wanted}), locked as materialized (select from wanted w join ${table} t on ${MATCHING} order by t.tenant_id, t.work_order_id for update of t), counted as materialized (select count(*) as rows from locked)`;
}

const MATCHING = `t.tenant_id = w.tenant_id and t.work_order_id = w.work_order_id and t.${VERSION_COLUMN} = w.expected`;

/** The first condition concerns no row, so it is checked before any is visited: by then all are locked. */
const LOCKED_AND_MATCHING = `(select rows from counted) >= 0 and ${MATCHING}`;

/**
 * One row for each write that was done. In a batch, what is the same for all rows runs once, in sub-selects,
 * which a lone statement is quicker without. Both run after the first row was written, when the transaction
 * has a number: whoever begins to listen relies on it.
 *
 * `watched` says whether anyone listens: a listener holds the lock in shared mode, so that nobody else
 * gets it. Two writers that try at the same instant may see each other instead; then one announces in vain.
 */
function answerOf({ watchedLock: lock }: TableNames): { readonly one: string; readonly many: string } {
  const watched = `case when pg_try_advisory_lock(${lock}) then not pg_advisory_unlock(${lock}) else true end`;
  const once = `${SEPARATOR_SQL}, ${NOW_MS}, ${SEPARATOR_SQL}, ${watched}`;
  return {
    one: `returning concat(t.${VERSION_COLUMN}, ${once}) as reply`,
    many: `returning concat(t.${VERSION_COLUMN}, (select concat(${once}, ${SEPARATOR_SQL})), t.tenant_id, '/', t.work_order_id) as reply`,
  };
}
