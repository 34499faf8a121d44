/**
 * Which server answers for the data, and whether it still has what this client saw: see `support/data-identity.ts`.
 *
 * A server is named by its system identifier and its timeline, which a promotion and a restored backup change. The write
 * counter is the number of the transaction: a server that never received an acknowledged write has not reached its
 * number when it takes over. Each answer carries the start time of the server that gave it; only when that changes the
 * identity is looked up again, so that a failover is known with the first answer after it.
 *
 * Not noticed: rows that somebody deletes or restores on a running server.
 */
import { type Env, randomId } from "../../env/index.ts";
import {
  type DataIdentity,
  type DataSighting,
  decodeIdentity,
  encodeIdentity,
  lossSince,
  nextIdentity,
  serverChangedAtMs,
} from "../support/data-identity.ts";
import type { Calls } from "./calls.ts";
import type { Statement } from "./driver.ts";
import { IDENTITY_KEY, type TableNames } from "./names.ts";
import { arrayLiteral, STAMPED, type Statements, statement, timeMsOf } from "./statements.ts";

/** Of a server that does not let this role ask. It then never changes. */
const UNNAMED_SERVER = "'unknown'";
/** Not pg_control_checkpoint(): after a promotion it shows the old timeline until the next checkpoint. */
const NAMED_SERVER =
  "(select system_identifier from pg_control_system()) || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)";
/** All three are everybody's to call unless somebody took that away. */
export const MAY_NAME_SERVER =
  "(select bool_and(coalesce(has_function_privilege(f.oid, 'execute'), false)) from (select to_regprocedure(p) as oid from unnest(array['pg_control_system()', 'pg_walfile_name(pg_lsn)', 'pg_current_wal_lsn()']) as p) f)";

export interface ServerIdentityOptions {
  readonly env: Env;
  readonly calls: Calls;
  readonly names: TableNames;
  readonly statements: Statements;
  readonly servers: "named" | "unnamed";
}

interface Found {
  readonly identity: DataIdentity;
  readonly serverId: string;
  readonly sequence: bigint;
  readonly stamp: string;
}

export class ServerIdentity {
  readonly #options: ServerIdentityOptions;
  readonly #lookUp: Statement;
  #checking: Promise<void> | null = null;
  #stamp: string | null = null;
  #identity: DataIdentity | null = null;
  #seen: DataSighting | null = null;
  #loss: string | null = null;

  constructor(options: ServerIdentityOptions) {
    this.#options = options;
    const { tenant, name } = IDENTITY_KEY;
    const server = options.servers === "named" ? NAMED_SERVER : UNNAMED_SERVER;
    this.#lookUp = statement(
      `select ${STAMPED}, ${server}, pg_snapshot_xmax(pg_current_snapshot())::text, t.version, t.value from (select) one left join ${options.names.sqlTable} t on t.tenant = '${tenant}' and t.name = '${name}'`,
    );
  }

  /** When another server took over, on its clock; null while the first one answers. */
  get changedAtMs(): number | null {
    return this.#identity === null ? null : serverChangedAtMs(this.#identity);
  }

  /** The channel of the present data set, which is created if there is none. */
  async channel(): Promise<string> {
    const { identity } = await this.#find();
    return `solehold_${identity.dataId}`;
  }

  /**
   * Call it with the stamp of each answer, and with the transaction of an acknowledged write. In one sentence what this
   * client saw that is gone, said once for each loss; null when all of it may still be there.
   */
  async observe(stamp: string, transaction?: string): Promise<string | null> {
    if (stamp !== this.#stamp) {
      this.#checking ??= this.#check().finally(() => {
        this.#checking = null;
      });
      await this.#checking;
    }
    const sequence = BigInt(transaction ?? 0);
    if (this.#seen !== null && sequence > this.#seen.sequence) this.#seen = { ...this.#seen, sequence };
    const loss = this.#loss;
    this.#loss = null;
    return loss;
  }

  async #check(): Promise<void> {
    const { identity, serverId, sequence, stamp } = await this.#find();
    if (this.#seen !== null) this.#loss = lossSince(this.#seen, identity, sequence);
    // Before the first answer nothing was seen; after a loss this client goes on with what is there.
    const isBaseline = this.#seen === null || this.#loss !== null;
    const seen = isBaseline ? sequence : (this.#seen?.sequence ?? sequence);
    this.#seen = { dataId: identity.dataId, serverId, sequence: seen };
    this.#identity = identity;
    this.#stamp = stamp;
  }

  /** What the table says, once the server that answers is the last one it names. */
  async #find(): Promise<Found> {
    const { calls, env, statements } = this.#options;
    for (;;) {
      const [row = []] = await calls.query(this.#lookUp, []);
      const [, stamp, serverId, next, version, value] = row;
      const server = { serverId: serverId ?? "", nowMs: timeMsOf(row), sequence: BigInt(next ?? 1) - 1n };
      const stored = typeof value === "string" ? decodeIdentity(value) : null;
      const changed = nextIdentity(stored, server, randomId(env));
      if (changed === null && stored !== null) return { identity: stored, ...server, stamp: stamp ?? "" };
      if (changed === null) continue;
      const columns = [IDENTITY_KEY.tenant, IDENTITY_KEY.name, version ?? null, encodeIdentity(changed)];
      await calls.query(
        statements.write,
        columns.map((column) => arrayLiteral([column])),
      );
    }
  }
}
