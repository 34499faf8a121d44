/**
 * The SQL of reads and conditional writes. Every statement stands alone: it is its own transaction, so it works behind a
 * pooler, and all its rows commit together.
 *
 * A batch of writes is one statement in three steps, each of which waits for the one before:
 * 1. lock the rows to be changed, in order of key, if they still have the expected version;
 * 2. insert the new rows, in order of key;
 * 3. update and delete the locked rows.
 * Two batches never wait for each other in a circle: nobody waits in step 3; an insert waits for the inserts, updates and
 * deletes of others, but not for locked rows, so only for batches in step 2 (in order of key) or 3; a lock waits for
 * batches that hold it, each of which has only greater keys to lock, or is in step 2 or 3.
 *
 * A write that finds another version changes nothing and returns no row. What is current then is read by a second
 * statement: the snapshot of the first may be older than the version that it lost to.
 */
import { StoreError } from "../../store/index.ts";
import type { Row, Statement } from "./driver.ts";
import { digest, IS_IDENTITY, type TableNames } from "./names.ts";

export function statement(text: string): Statement {
  return { name: `solehold_${digest(text).slice(0, 24)}`, text };
}

/** Microseconds: a float holds them exactly, and a numeric (what `extract` returns) costs ten times as much. */
const NOW_US = "(date_part('epoch', clock_timestamp()) * 1000000)::bigint";
/** Another value whenever another server, or the same after a restart, answers. */
const STANDBY = "standby";
const SERVER_STAMP = `case when pg_is_in_recovery() then '${STANDBY}' else date_part('epoch', pg_postmaster_start_time())::text end`;
/** The first two columns of every answer of a table's statements. */
export const STAMPED = `(select ${NOW_US}), (select ${SERVER_STAMP})`;

export function comesFromStandby(rows: readonly Row[]): boolean {
  return rows[0]?.[1] === STANDBY;
}

/** The store's time, from the first column of the first row. */
export function timeMsOf(rows: readonly Row[]): number {
  return Math.floor(Number(rows[0]?.[0]) / 1_000);
}

/** A sub-select hides the array's length: a plan that depended on it would be made anew at each use, for half a write's time. */
function array(type: "text" | "uuid", parameter: number): string {
  return `(select $${parameter}::${type}[])`;
}

/** An array parameter as PostgreSQL reads it: `{"a","b",NULL}`. */
export function arrayLiteral(values: readonly (string | null)[]): string {
  const elements = values.map((value) => (value === null ? "NULL" : `"${value.replace(/["\\]/g, "\\$&")}"`));
  return `{${elements.join(",")}}`;
}

/** Which server answers, and how far its log is. */
export interface ServerQuestions {
  readonly name: string;
  /** The end of the log. After a row was written, it is before the end of that transaction. */
  readonly position: string;
  /** Where the server began to write its own log: after a promotion, the end of what it had received. */
  readonly start: string;
}

/** Not pg_control_checkpoint(): after a promotion it shows the old timeline until the next checkpoint. */
export const SERVER_QUESTIONS: ServerQuestions = {
  name: "(select system_identifier from pg_control_system()) || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)",
  position: "pg_current_wal_insert_lsn()",
  start: "coalesce(pg_last_wal_replay_lsn(), pg_current_wal_insert_lsn())",
};

/** For a server that does not tell: it never seems to change. */
export const UNANSWERED_QUESTIONS: ServerQuestions = { name: "'unknown'", position: "'0/0'", start: "'0/0'" };

const POSITION = /^([\dA-F]+)\/([\dA-F]+)$/i;

/** A position in the log, such as 16/B374D848, as a number. */
export function positionFrom(text: string): bigint {
  const [, high, low] = POSITION.exec(text) ?? [];
  if (high !== undefined && low !== undefined) return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
  const message = `PostgreSQL: '${text}' is no position in its log: this is not the answer to what was asked`;
  throw new StoreError("internal", message, { outcome: "unknown" });
}

export interface Statements {
  /** Of tenants and names: time, stamp, place, version, value. */
  readonly read: Statement;
  /** Of tenants, names, expected versions and new values: time, stamp, is watched, position, tenant, name, version. */
  readonly write: Statement;
  /** Of payloads. */
  readonly notify: Statement;
  /** Of one payload: whether somebody holds the listeners' lock. */
  readonly probe: Statement;
  /** The oldest transaction that is under way, and the next to come. */
  readonly transactions: Statement;
}

export function statementsFor(
  { table, listenerLock: lock }: TableNames,
  questions: ServerQuestions,
): Statements {
  const isKey = (from: string): string => `t.tenant = ${from}.tenant and t.name = ${from}.name`;
  /**
   * Evaluated after a row was written, when the transaction has a number: the listener's handshake relies on it. A
   * listener holds the lock in shared mode, so that nobody else gets it. Two writers that try at the same instant may
   * see each other instead; then one announces in vain.
   */
  const watched = `case when pg_try_advisory_lock(${lock}) then not pg_advisory_unlock(${lock}) else true end`;
  const answer = `returning ${STAMPED}, (select ${watched}), (select ${questions.position}), t.tenant, t.name`;
  /** Only those who may read the table know the channel: notifications carry records, and anybody may listen. */
  const channel = `coalesce((select 'solehold_' || (value::json ->> 'dataId') from ${table} where ${IS_IDENTITY}), 'solehold')`;
  return {
    read: statement(
      `select ${STAMPED}, k.place, k.version, k.value from (select) one left join (select w.place, t.version, t.value from unnest(${array("text", 1)}, ${array("text", 2)}) with ordinality as w(tenant, name, place) left join lateral (select version, value from ${table} t where ${isKey("w")} limit 1) t on true) k on true`,
    ),
    write: statement(
      `with wanted as materialized (select * from unnest(${array("text", 1)}, ${array("text", 2)}, ${array("uuid", 3)}, ${array("text", 4)}) as w(tenant, name, expected, value) order by tenant collate "C", name collate "C"),
locked as materialized (select w.* from wanted w cross join lateral (select from ${table} t where ${isKey("w")} and t.version = w.expected for update) t),
inserted as (insert into ${table} as t (tenant, name, value) select tenant, name, value from wanted where (select count(*) from locked) >= 0 and expected is null and value is not null on conflict do nothing ${answer}, t.version),
updated as (update ${table} as t set version = gen_random_uuid(), value = l.value from locked l where (select count(*) from inserted) >= 0 and l.value is not null and ${isKey("l")} ${answer}, t.version),
deleted as (delete from ${table} as t using locked l where (select count(*) from inserted) >= 0 and l.value is null and ${isKey("l")} ${answer}, null::uuid)
select * from inserted union all select * from updated union all select * from deleted`,
    ),
    notify: statement(`select pg_notify(${channel}, p.payload) from unnest($1::text[]) as p(payload)`),
    probe: statement(`select ${watched}, pg_notify(${channel}, $1)`),
    transactions: statement(
      "select pg_snapshot_xmin(pg_current_snapshot())::text, pg_snapshot_xmax(pg_current_snapshot())::text",
    ),
  };
}
