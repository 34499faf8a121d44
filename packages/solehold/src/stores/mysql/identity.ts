/**
 * Which data this is and which server answers for it, looked at on every new connection: a failover ends the old ones.
 * It is kept in the table, under the empty tenant, which no lease can have. MySQL has no counter of all writes, so lost
 * writes are not noticed; that the table was emptied or replaced is, and that another server took over.
 */
import { type Env, randomId } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import {
  type DataIdentity,
  decodeIdentity,
  encodeIdentity,
  lossSince,
  nextIdentity,
  serverChangedAtMs,
} from "../support/data-identity.ts";
import { NOW_MS } from "./backend.ts";
import type { Connection } from "./connections.ts";
import { DUPLICATE_KEY, errnoOf } from "./errors.ts";

/** MariaDB and MySQL name a server by different variables; hosts that were cloned differ in the first two. */
const SERVER_SQL = `show variables where variable_name in
  ('hostname', 'port', 'server_id', 'server_uid', 'server_uuid')`;

export class ServerIdentity {
  readonly #env: Env;
  readonly #table: string;
  #identity: DataIdentity | null = null;

  constructor(env: Env, table: string) {
    this.#env = env;
    this.#table = `\`${table}\``;
  }

  get changedAtMs(): number | null {
    return this.#identity === null ? null : serverChangedAtMs(this.#identity);
  }

  /** Rejects once, with "data-loss", when this is other data than before. */
  async look(connection: Connection): Promise<void> {
    const seen = this.#identity;
    const variables = await connection.rows(SERVER_SQL);
    const serverId = variables.map((row) => String(row.Value)).join("/");
    const identity = await this.#join(connection, serverId);
    this.#identity = identity;
    if (seen === null) return;
    const loss = lossSince({ dataId: seen.dataId, serverId, sequence: 0n }, identity, 0n);
    if (loss === null) return;
    const message = `mysql: table ${this.#table} has lost data (${loss}): holders of leases from before may still believe in them`;
    throw new StoreError("data-loss", message, { outcome: "not-applied" });
  }

  async #join(connection: Connection, serverId: string): Promise<DataIdentity> {
    for (;;) {
      const [row = {}] = await connection.rows(
        `select ${NOW_MS} as now_ms, t.version, t.value from (select 1) as one
          left join ${this.#table} as t on t.tenant = '' and t.name = ''`,
      );
      const stored = row.version === null ? null : decodeIdentity(String(row.value));
      const server = { serverId, nowMs: Number(row.now_ms), sequence: 0n };
      const next = nextIdentity(stored, server, randomId(this.#env));
      if (next === null && stored !== null) return stored;
      if (next !== null && (await this.#replace(connection, row.version as Buffer | null, next))) return next;
    }
  }

  /** False when somebody else was quicker. */
  async #replace(connection: Connection, version: Buffer | null, next: DataIdentity): Promise<boolean> {
    const [newVersion, value] = [Buffer.from(randomId(this.#env)), Buffer.from(encodeIdentity(next))];
    if (version !== null) {
      const sql = `update ${this.#table} set version = ?, value = ? where tenant = '' and name = '' and version = ?`;
      return (await connection.write(sql, [newVersion, value, version])).affectedRows === 1;
    }
    const sql = `insert into ${this.#table} (tenant, name, version, value, written_ms) values ('', '', ?, ?, ${NOW_MS})`;
    try {
      await connection.write(sql, [newVersion, value]);
      return true;
    } catch (error) {
      if (errnoOf(error) === DUPLICATE_KEY) return false;
      throw error;
    }
  }
}
