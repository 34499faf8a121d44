/**
 * The SQL of reads and conditional writes. Every statement stands alone: it is its own transaction, so it
 * works behind a pooler, and all its rows commit together.
 *
 * Two writers of the same rows never wait for each other in a circle, because every statement takes its rows
 * in order of key: an upsert in the order in which it is given them, a delete by locking first, in order (the
 * join of a delete may visit rows in any order).
 *
 * Creations and updates of a batch are one upsert. It finds each row by the primary key, whatever the planner
 * believes about the table, and needs no join; a multi-row update that locks in order costs a third more.
 *
 * A write that finds another version changes nothing and returns no row. What is current then is read by a
 * second statement: the snapshot of the first may be older than the version that it lost to.
 */
import { COLUMNS, type Column } from "./columns.ts";
import { digest, type TableNames } from "./names.ts";
import { CHANGED_COLUMN, INSERTED_COLUMN, VERSION_COLUMN } from "./schema.ts";
import { NULL_MARK_SQL, SEPARATOR_SQL } from "./sql-text.ts";

export interface Statement {
  /** Unique for the text, so that stores of several tables can share a pool. */
  readonly name: string;
  readonly text: string;
  /** "counted": it returns no row; whoever runs it answers with an empty one for each that it changed. */
  readonly answer?: "counted";
  /** It is done when this one, which is sent right behind it, was done, too: see `early`. */
  readonly confirmedBy?: Statement;
}

export function statement(text: string): Statement {
  return { name: `solehold_${digest(text).slice(0, 24)}`, text };
}

function counted(text: string): Statement {
  return { ...statement(text), answer: "counted" };
}

/** Microseconds: a float holds them exactly, and a numeric (what `extract` returns) costs ten times as much. */
export const NOW_US = "(date_part('epoch', clock_timestamp()) * 1000000)::bigint";

const NAMES = COLUMNS.map(({ name }) => name);
const KEY_COLUMNS = COLUMNS.slice(0, 2);
const CHANGEABLE = NAMES.slice(2);
/** Behind the columns, as a parameter and as a field of a batch's row. */
const EXPECTED_FIELD = NAMES.length + 1;
/** A lone write brings its new version: to draw one, and to send it back, is a tenth of the server's work. */
const CREATED_VERSION = `$${NAMES.length + 1}`;
const UPDATED_VERSION = `$${NAMES.length + 2}`;
const ORDER = "tenant_id, work_order_id";

/**
 * An update whose row is gone must not create one. It would be inserted with this number, which no
 * transaction has, and then the answer divides by zero: nothing of the batch is done (see `isVanishedRow`).
 */
const NOT_TO_BE_INSERTED = "0";

export interface Statements {
  readonly clock: Statement;
  readonly readOne: Statement;
  readonly readTwo: Statement;
  readonly readMany: Statement;
  readonly insertOne: Statement;
  readonly updateOne: Statement;
  /** Done only if nobody listens, and told without the time: see `unheard`. */
  readonly insertUnheard: Statement;
  readonly updateUnheard: Statement;
  /** As an update, where no more than the state changes: see `plain-ends.ts`. */
  readonly endOne: Statement;
  readonly endUnheard: Statement;
  readonly deleteOne: Statement;
  /** Told by themselves, and seen by others before they are safe: see `early`. */
  readonly updateEarly: Statement;
  readonly endEarly: Statement;
  readonly deleteEarly: Statement;
  readonly confirm: Statement;
  readonly upsertMany: Statement;
  readonly deleteMany: Statement;
  readonly notify: Statement;
  readonly notifyOne: Statement;
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
  const changedTo = (version: string): string =>
    `${VERSION_COLUMN} = ${version}, ${CHANGED_COLUMN} = pg_current_xact_id()`;
  // A creation brings a version that no row has, so it changes none; an update brings the one it expects.
  const expected = `s.f[${EXPECTED_FIELD}]`;
  const wantedVersion = `coalesce(${expected}::uuid, gen_random_uuid())`;
  const insertion = `case when ${expected} is null then pg_current_xact_id() else '${NOT_TO_BE_INSERTED}'::xid8 end`;
  const vanished = `1 / case t.${INSERTED_COLUMN} when '${NOT_TO_BE_INSERTED}'::xid8 then 0 else 1 end`;
  const rowAt = (parameter: number): string =>
    `(select ${rowText("t")} from ${table} t where t.tenant_id = $${parameter} and t.work_order_id = $${parameter + 1})`;
  const end = `update ${table} as t set lease_state = $4, released_at_ms = $5, nonce = $6, ${changedTo("$7")} where t.tenant_id = $1 and t.work_order_id = $2 and t.${VERSION_COLUMN} = $3`;
  const assign = (source: (name: string, index: number) => string): string =>
    CHANGEABLE.map((name, index) => `${name} = ${source(name, index)}`).join(", ");
  const update = `update ${table} as t set ${assign((_, index) => parameter(index + 2))}, ${changedTo(UPDATED_VERSION)} where t.tenant_id = $1 and t.work_order_id = $2 and t.${VERSION_COLUMN} = $${EXPECTED_FIELD}`;
  const deletion = `delete from ${table} as t where t.tenant_id = $1 and t.work_order_id = $2 and t.${VERSION_COLUMN} = $3`;

  return {
    clock: statement(`select ${NOW_US}`),
    readOne: statement(`select ${NOW_US}, ${rowAt(1)}`),
    readTwo: statement(`select ${NOW_US}, ${rowAt(1)}, ${rowAt(3)}`),
    readMany: statement(
      `select concat_ws(${SEPARATOR_SQL}, (select ${NOW_US}), k.place, (select ${rowText("t")} from ${table} t where t.tenant_id = k.tenant_id and t.work_order_id = k.work_order_id)) from unnest($1::text[], $2::text[]) with ordinality as k(${ORDER}, place)`,
    ),
    insertOne: statement(
      `insert into ${table} as t (${NAMES.join(", ")}, ${VERSION_COLUMN}) values (${parameters}, ${CREATED_VERSION}) on conflict do nothing ${answer.one}`,
    ),
    updateOne: statement(`${update} ${answer.one}`),
    insertUnheard: counted(
      `insert into ${table} as t (${NAMES.join(", ")}, ${VERSION_COLUMN}) select ${parameters}, ${CREATED_VERSION} where ${unheard(names)} on conflict do nothing`,
    ),
    updateUnheard: counted(`${update} and ${unheard(names)}`),
    endOne: statement(`${end} ${answer.one}`),
    endUnheard: counted(`${end} and ${unheard(names)}`),
    deleteOne: statement(`${deletion} ${answer.one}`),
    updateEarly: early(names, `${update} ${answer.one}`, NAMES.length + 3),
    endEarly: early(names, `${end} ${answer.one}`, 8),
    deleteEarly: early(names, `${deletion} ${answer.one}`, 4),
    confirm: CONFIRM,
    upsertMany: statement(
      `insert into ${table} as t (${NAMES.join(", ")}, ${VERSION_COLUMN}, ${INSERTED_COLUMN}) select ${fields(COLUMNS)}, ${wantedVersion}, ${insertion} from ${ROWS} on conflict (${ORDER}) do update set ${assign((name) => `excluded.${name}`)}, ${changedTo("gen_random_uuid()")} where t.${VERSION_COLUMN} = excluded.${VERSION_COLUMN} ${answer.many}, ${vanished}`,
    ),
    deleteMany: statement(
      `${lockInOrder(table, KEY_COLUMNS)} delete from ${table} as t using wanted w where ${LOCKED_AND_MATCHING} ${answer.many}`,
    ),
    notifyOne: statement(`select pg_notify('${names.channel}', $1)`),
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
 * One row for each write that was done: the server's time and whether anyone listens, and in a batch its
 * version and key. What is the same for all rows of a batch runs once, in sub-selects, which a lone statement
 * is quicker without. Both run after the first row was written, when the transaction has a number: whoever
 * begins to listen relies on it.
 *
 * A listener holds the lock in shared mode, so that nobody else gets it. Two writers that try at the same
 * instant may see each other instead; then one announces in vain.
 */
function answerOf({ watchedLock: lock }: TableNames): { readonly one: string; readonly many: string } {
  const watched = `case when pg_try_advisory_lock(${lock}) then not pg_advisory_unlock(${lock}) else true end`;
  return {
    one: `returning ${NOW_US}, ${watched}`,
    many: `returning (select ${NOW_US}), (select ${watched}), t.${VERSION_COLUMN}, t.tenant_id, t.work_order_id`,
  };
}

/**
 * That nobody listens, as a condition. A statement that returns a row keeps it in a store of its own until all is done,
 * which is more of its work than anything else that a lone write could do without. The transaction gets its number
 * first: whoever begins to listen relies on it.
 */
function unheard({ watchedLock: lock }: TableNames): string {
  return `case when pg_current_xact_id() is null then false when pg_try_advisory_lock(${lock}) then pg_advisory_unlock(${lock}) else false end`;
}

/** Writes a line into the server's log, and is answered when all of the log up to it is safe. */
const CONFIRM = statement("select pg_logical_emit_message(true, 'solehold', '')");

/**
 * A lone end for which somebody probably waits: the news of it, the parameter behind all others, leaves with it, and
 * neither waits for the disk. Its own client does: it is answered once the statement that is sent behind it was.
 *
 * So others may see, for as long as the disk takes, an end that a crash would undo. That gives nothing away: an end
 * raises no fence, and whatever is written upon it comes behind it in the server's log, so that it is safe before that
 * is. Inside of the transaction the news may be because this one does not keep others waiting while it waits for the disk.
 */
function early({ channel }: TableNames, text: string, payload: number): Statement {
  return {
    ...statement(
      `${text}, set_config('synchronous_commit', 'off', true), pg_notify('${channel}', $${payload})`,
    ),
    confirmedBy: CONFIRM,
  };
}
