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
import { randomId } from "../../env/index.ts";
import {
  type DataIdentity,
  type DataSighting,
  decodeIdentity,
  encodeIdentity,
  lossSince,
  nextIdentity,
  serverChangedAtMs,
} from "../support/data-identity.ts";
import type { Statement } from "./driver.ts";
import { IDENTITY_KEY, IS_IDENTITY } from "./names.ts";
import type { StoreContext } from "./options.ts";
import { arrayLiteral, STAMPED, statement, timeMsOf } from "./statements.ts";

/** Not pg_control_checkpoint(): after a promotion it shows the old timeline until the next checkpoint. */
const SERVER_NAME =
  "(select system_identifier from pg_control_system()) || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)";
/** Everybody may call these functions, unless somebody took the right away. */
export const MAY_NAME_SERVER =
  "(select bool_and(coalesce(has_function_privilege(to_regprocedure(f), 'execute'), false)) from unnest(array['pg_control_system()', 'pg_walfile_name(pg_lsn)', 'pg_current_wal_lsn()']) as f)";

interface Found extends DataSighting {
  readonly identity: DataIdentity;
  readonly stamp: string;
}

export class ServerIdentity {
  readonly #context: StoreContext;
  readonly #lookUp: Statement;
  #checking: Promise<void> | null = null;
  #found: Found | null = null;
  /** The last transaction of this client's acknowledged writes. */
  #sequence = 0n;
  #loss: string | null = null;

  /** Where this role may not ask which server it is, the server never seems to change. */
  constructor(context: StoreContext, servers: "named" | "unnamed") {
    this.#context = context;
    const server = servers === "named" ? SERVER_NAME : "'unknown'";
    this.#lookUp = statement(
      `select ${STAMPED}, ${server}, pg_snapshot_xmax(pg_current_snapshot())::text, t.version, t.value from (select) one left join ${context.names.table} t on ${IS_IDENTITY}`,
    );
  }

  /** When another server took over, on its clock; null while the first one answers. */
  get changedAtMs(): number | null {
    return this.#found === null ? null : serverChangedAtMs(this.#found.identity);
  }

  /** The channel of the present data set, which is created if there is none. */
  async channel(): Promise<string> {
    return `solehold_${(await this.#find()).dataId}`;
  }

  /**
   * Call it with the stamp of each answer, and with the transaction of an acknowledged write. In one sentence what this
   * client saw that is gone, said once for each loss; null when all of it may still be there.
   */
  async observe(stamp: string, transaction = "0"): Promise<string | null> {
    if (stamp !== this.#found?.stamp) {
      this.#checking ??= this.#check().finally(() => {
        this.#checking = null;
      });
      await this.#checking;
    }
    const sequence = BigInt(transaction);
    if (sequence > this.#sequence) this.#sequence = sequence;
    const loss = this.#loss;
    this.#loss = null;
    return loss;
  }

  async #check(): Promise<void> {
    const last = this.#found;
    const found = await this.#find();
    if (last !== null)
      this.#loss = lossSince({ ...last, sequence: this.#sequence }, found.identity, found.sequence);
    // After a loss this client goes on with what is there.
    if (this.#loss !== null) this.#sequence = 0n;
    this.#found = found;
  }

  /** What the table says, once the server that answers is the last one it names. */
  async #find(): Promise<Found> {
    const { calls, env, statements } = this.#context;
    for (;;) {
      const [row = []] = await calls.query(this.#lookUp, []);
      const [, stamp, serverId, nextTransaction, version, value] = row;
      const sequence = BigInt(nextTransaction ?? 1) - 1n;
      const server = { serverId: serverId ?? "", nowMs: timeMsOf(row), sequence };
      const identity = decodeIdentity(value ?? "");
      const changed = nextIdentity(identity, server, randomId(env));
      if (identity !== null && changed === null)
        return { identity, dataId: identity.dataId, ...server, stamp: stamp ?? "" };
      const { tenant, name } = IDENTITY_KEY;
      const columns = [tenant, name, version ?? null, changed === null ? null : encodeIdentity(changed)];
      await calls.query(
        statements.write,
        columns.map((column) => arrayLiteral([column])),
      );
    }
  }
}
