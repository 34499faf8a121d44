/**
 * Which data this is and which server answers for it, looked at on every new connection: a failover ends the old ones.
 * It is kept in the table, under the empty tenant, which no lease can have. MySQL has no counter of all writes, so lost
 * writes are not noticed; that the table was emptied or replaced is, and that another server took over.
 */
import { type Env, randomId } from "../../env/index.ts";
import * as identities from "../support/data-identity.ts";
import { lossError } from "../support/failures.ts";
import type { Connection } from "./connections.ts";
import type { LeaseTable } from "./table.ts";

const KEY = { tenant: "", name: "" };
/** MariaDB and MySQL name a server by different variables. */
const SERVER_SQL = `show variables where variable_name in
  ('hostname', 'port', 'server_id', 'server_uid', 'server_uuid')`;

export class ServerIdentity {
  readonly #env: Env;
  readonly #table: LeaseTable;
  #identity: identities.DataIdentity | null = null;

  constructor(env: Env, table: LeaseTable) {
    this.#env = env;
    this.#table = table;
  }

  get changedAtMs(): number | null {
    return this.#identity === null ? null : identities.serverChangedAtMs(this.#identity);
  }

  /** Rejects once, with "data-loss", when this is other data than before. */
  async look(connection: Connection): Promise<void> {
    const variables = await connection.rows(SERVER_SQL);
    const serverId = variables.map((row) => String(row.Value)).join("/");
    const identity = await this.#join(connection, serverId);
    // No await in between: of several connections that find other data, one reports it.
    const seen = this.#identity;
    this.#identity = identity;
    const loss = seen && identities.lossSince({ dataId: seen.dataId, serverId, sequence: 0n }, identity, 0n);
    if (loss !== null) throw lossError("the mysql server", loss, "not-applied");
  }

  async #join(connection: Connection, serverId: string): Promise<identities.DataIdentity> {
    for (;;) {
      const { value, timeMs = 0 } = await this.#table.get(connection, KEY);
      const stored = value === null ? null : identities.decodeIdentity(value.text);
      const next = identities.nextIdentity(
        stored,
        { serverId, nowMs: timeMs, sequence: 0n },
        randomId(this.#env),
      );
      if (next === stored) return next;
      const put = { key: KEY, expected: value?.version ?? null, text: identities.encodeIdentity(next) };
      const reply = await this.#table.putIf(connection, { ...put, newVersion: randomId(this.#env) });
      if (reply.kind === "done") return next;
    }
  }
}
