/**
 * One row a key. A create is a plain INSERT, which fails on a row that exists; an update and a delete name the version
 * in their WHERE. Each is one statement that commits by itself, so each is one atomic step whatever the isolation level.
 *
 * Time: LAST_INSERT_ID(expression) makes the reply to a write carry the server's clock, so no second request is needed.
 * UTC_TIMESTAMP knows neither time zones nor summer time.
 */
import type { LeaseKey } from "../../core/index.ts";
import type {
  BackendReply,
  ConditionalPut,
  ConditionalReply,
  GetReply,
  ListRange,
  ListReply,
  SimpleBackend,
} from "../../store/index.ts";
import type { Connections, Row, Written } from "./connections.ts";
import { DEADLOCK, DUPLICATE_KEY, errnoOf } from "./errors.ts";

export const NOW_MS = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) div 1000";
/** A deadlock's victim is rolled back for certain, so it may be sent again. */
const MAX_DEADLOCKS = 5;

export class MysqlBackend implements SimpleBackend {
  readonly #connections: Connections;
  readonly #table: string;
  readonly #serverChangedAtMs: () => number | null;
  readonly #onClose: () => Promise<void>;

  constructor(options: {
    readonly connections: Connections;
    readonly table: string;
    readonly serverChangedAtMs: () => number | null;
    readonly onClose: () => Promise<void>;
  }) {
    this.#connections = options.connections;
    this.#table = `\`${options.table}\``;
    this.#serverChangedAtMs = options.serverChangedAtMs;
    this.#onClose = options.onClose;
  }

  get(key: LeaseKey, signal: AbortSignal): Promise<GetReply> {
    return this.#connections.use(signal, async (connection) => {
      const sql = `select ${NOW_MS} as now_ms, t.version, t.value from (select 1) as one
        left join ${this.#table} as t on t.tenant = ? and t.name = ?`;
      const [row = {}] = await connection.rows(sql, bytesOf(key.tenant, key.name));
      const value = row.version === null ? null : { version: textOf(row.version), text: textOf(row.value) };
      return { ...this.#stamp(row.now_ms), value };
    });
  }

  async putIf(put: ConditionalPut, signal: AbortSignal): Promise<ConditionalReply> {
    const { key, expected, text, newVersion } = put;
    const next = bytesOf(newVersion, text);
    const written =
      expected === null
        ? await this.#write(
            signal,
            `insert into ${this.#table} (version, value, written_ms, tenant, name)
              values (?, ?, last_insert_id(${NOW_MS}), ?, ?)`,
            [...next, ...bytesOf(key.tenant, key.name)],
          )
        : await this.#write(
            signal,
            `update ${this.#table} set version = ?, value = ?, written_ms = last_insert_id(${NOW_MS})
              where tenant = ? and name = ? and version = ?`,
            [...next, ...bytesOf(key.tenant, key.name, expected)],
          );
    if (written === null || written.affectedRows === 0) return { kind: "conflict" };
    return { ...this.#stamp(written.insertId), kind: "done", version: newVersion };
  }

  async deleteIf(key: LeaseKey, expected: string, signal: AbortSignal): Promise<ConditionalReply> {
    const sql = `delete from ${this.#table} where tenant = ? and name = ? and version = ?`;
    const written = await this.#write(signal, sql, bytesOf(key.tenant, key.name, expected));
    if (written === null || written.affectedRows === 0) return { kind: "conflict" };
    const rows = await this.#connections.use(signal, (connection) =>
      connection.rows(`select ${NOW_MS} as now_ms`),
    );
    return { ...this.#stamp(rows[0]?.now_ms), kind: "done" };
  }

  list({ tenant, prefix, after, limit }: ListRange, signal: AbortSignal): Promise<ListReply> {
    const conditions: (readonly [sql: string, ...values: string[]])[] = [];
    if (tenant !== null) conditions.push(["tenant = ?", tenant]);
    else conditions.push(["tenant <> ''"]);
    if (prefix !== "") conditions.push(["left(name, length(?)) = ? and name >= ?", prefix, prefix, prefix]);
    if (after !== null)
      conditions.push(["(tenant > ? or (tenant = ? and name > ?))", after.tenant, after.tenant, after.name]);
    // Joined to one row, so that an empty page has the time, too.
    const sql = `select ${NOW_MS} as now_ms, t.* from (select 1) as one left join (
        select tenant, name, version, value from ${this.#table}
        where ${conditions.map(([condition]) => condition).join(" and ")} order by tenant, name limit ${limit + 1}
      ) as t on true order by t.tenant, t.name`;
    const values = conditions.flatMap(([, ...each]) => bytesOf(...each));
    return this.#connections.use(signal, async (connection) => {
      const rows = await connection.rows(sql, values);
      const found = rows.filter(({ name }) => name !== null).map(itemOf);
      const items = found.slice(0, limit);
      const next = found.length > limit ? (items.at(-1)?.key ?? null) : null;
      return { ...this.#stamp(rows[0]?.now_ms), items, next };
    });
  }

  close(): Promise<void> {
    return this.#onClose();
  }

  /** Null when the row exists already. */
  async #write(signal: AbortSignal, sql: string, values: readonly Buffer[]): Promise<Written | null> {
    for (let deadlocks = 0; ; deadlocks += 1) {
      try {
        return await this.#connections.use(signal, (connection) => connection.write(sql, values));
      } catch (error) {
        const errno = errnoOf(error);
        if (errno === DUPLICATE_KEY) return null;
        if (errno !== DEADLOCK || deadlocks === MAX_DEADLOCKS || signal.aborted) throw error;
      }
    }
  }

  #stamp(nowMs: unknown): BackendReply {
    return { timeMs: Number(nowMs), serverChangedAtMs: this.#serverChangedAtMs() };
  }
}

function itemOf({ tenant, name, version, value }: Row) {
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
