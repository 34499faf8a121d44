/**
 * One row a key. A create is a plain INSERT, which fails on a row that exists; an update and a delete name the version
 * in their WHERE. Each is one statement that commits by itself, so each is one atomic step whatever the isolation level.
 *
 * Time: LAST_INSERT_ID(expression) makes the reply to a write carry the server's clock, so no second request is needed.
 * UTC_TIMESTAMP knows neither time zones nor summer time.
 */
import type { ResultSetHeader } from "mysql2/promise";
import type { LeaseKey } from "../../core/index.ts";
import type { ConditionalPut, ConditionalReply, GetReply, ListRange, ListReply } from "../../store/index.ts";
import { firstPage } from "../../store/paging.ts";
import type { Connection, Row } from "./connections.ts";
import { DEADLOCK, DUPLICATE_KEY, errnoOf } from "./errors.ts";

const NOW_MS = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) div 1000";
/** A deadlock's victim is rolled back for certain, so it may be sent again. */
const MAX_DEADLOCKS = 5;

export class LeaseTable {
  readonly #table: string;

  constructor(table: string) {
    this.#table = `\`${table}\``;
  }

  async get(connection: Connection, { tenant, name }: LeaseKey): Promise<GetReply> {
    const sql = `select ${NOW_MS} as now_ms, t.version, t.value from (select 1) as one
      left join ${this.#table} as t on t.tenant = ? and t.name = ?`;
    const [row = {}] = await connection.rows(sql, bytesOf(tenant, name));
    const value = row.version === null ? null : { version: textOf(row.version), text: textOf(row.value) };
    return { timeMs: Number(row.now_ms), value };
  }

  async putIf(connection: Connection, put: ConditionalPut): Promise<ConditionalReply> {
    const { key, expected, text, newVersion } = put;
    const set = `set version = ?, value = ?, written_ms = last_insert_id(${NOW_MS})`;
    const values = bytesOf(newVersion, text, key.tenant, key.name);
    const written =
      expected === null
        ? await write(connection, `insert into ${this.#table} ${set}, tenant = ?, name = ?`, values)
        : await write(
            connection,
            `update ${this.#table} ${set} where tenant = ? and name = ? and version = ?`,
            [...values, ...bytesOf(expected)],
          );
    if (written === null || written.affectedRows === 0) return { kind: "conflict" };
    return { kind: "done", version: newVersion, timeMs: Number(written.insertId) };
  }

  async deleteIf(
    connection: Connection,
    { tenant, name }: LeaseKey,
    expected: string,
  ): Promise<ConditionalReply> {
    const sql = `delete from ${this.#table} where tenant = ? and name = ? and version = ?`;
    const written = await write(connection, sql, bytesOf(tenant, name, expected));
    if (written === null || written.affectedRows === 0) return { kind: "conflict" };
    const [row = {}] = await connection.rows(`select ${NOW_MS} as now_ms`);
    return { kind: "done", timeMs: Number(row.now_ms) };
  }

  async list(connection: Connection, { tenant, prefix, after, limit }: ListRange): Promise<ListReply> {
    const conditions: (readonly [sql: string, ...values: string[]])[] = [
      tenant === null ? ["tenant <> ''"] : ["tenant = ?", tenant],
    ];
    if (prefix !== "") conditions.push(["name >= ? and left(name, length(?)) = ?", prefix, prefix, prefix]);
    if (after !== null)
      conditions.push(["(tenant > ? or tenant = ? and name > ?)", after.tenant, after.tenant, after.name]);
    // Joined to one row, so that an empty page has the time, too.
    const sql = `select ${NOW_MS} as now_ms, t.* from (select 1) as one left join (
        select tenant, name, version, value from ${this.#table}
        where ${conditions.map(([condition]) => condition).join(" and ")} order by tenant, name limit ${limit + 1}
      ) as t on true order by t.tenant, t.name`;
    const rows = await connection.rows(
      sql,
      conditions.flatMap(([, ...values]) => bytesOf(...values)),
    );
    const found = rows.filter(({ name }) => name !== null).map(itemOf);
    return { timeMs: Number(rows[0]?.now_ms), ...firstPage(found, limit) };
  }
}

/** Null when the row exists already. */
async function write(
  connection: Connection,
  sql: string,
  values: readonly Buffer[],
): Promise<ResultSetHeader | null> {
  for (let deadlocks = 0; ; deadlocks += 1) {
    try {
      return await connection.write(sql, values);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === DUPLICATE_KEY) return null;
      if (errno !== DEADLOCK || deadlocks === MAX_DEADLOCKS) throw error;
    }
  }
}

function itemOf({ tenant, name, version, value }: Row): ListReply["items"][number] {
  const key = { tenant: textOf(tenant), name: textOf(name) };
  return { key, version: textOf(version), text: textOf(value) };
}

/** Bytes travel as hexadecimal literals, which no sql_mode and no character set of the connection reads differently. */
function bytesOf(...texts: readonly string[]): Buffer[] {
  return texts.map((text) => Buffer.from(text, "utf8"));
}

function textOf(bytes: unknown): string {
  return (bytes as Buffer).toString("utf8");
}
