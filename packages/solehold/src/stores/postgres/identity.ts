/**
 * Which server answers for the data, and whether it still has what this client saw: see `support/data-identity.ts`.
 *
 * A server is named by its system identifier and its timeline, which a promotion and a restored backup change. The write
 * counter is the position in the server's log: a write beyond the position at which another server took over is lost.
 * Each answer carries the start time of the server that gave it; only when that changes the identity is looked up again,
 * so that a failover is known with the first answer after it.
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
import { arrayLiteral, positionFrom, STAMPED, statement, timeMsOf } from "./statements.ts";

interface Found extends DataSighting {
  readonly identity: DataIdentity;
  readonly stamp: string;
}

export class ServerIdentity {
  readonly #context: StoreContext;
  readonly #lookUp: Statement;
  #checking: Promise<void> | null = null;
  #found: Found | null = null;
  /** Of this client's last acknowledged write. */
  #position = 0n;
  #loss: string | null = null;

  constructor(context: StoreContext) {
    this.#context = context;
    const { name, position, start } = context.server.questions;
    this.#lookUp = statement(
      `select ${STAMPED}, ${name}, ${position}, ${start}, t.version, t.value from (select) one left join ${context.names.table} t on ${IS_IDENTITY}`,
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
   * Call it with the stamp of each answer, and with the position of an acknowledged write. In one sentence what this
   * client saw that is gone, said once for each loss; null when all of it may still be there.
   */
  async observe(stamp: string, written: string | null): Promise<string | null> {
    if (stamp !== this.#found?.stamp) {
      this.#checking ??= this.#check().finally(() => {
        this.#checking = null;
      });
      await this.#checking;
    }
    const position = positionFrom(written ?? "0/0");
    if (position > this.#position) this.#position = position;
    const loss = this.#loss;
    this.#loss = null;
    return loss;
  }

  async #check(): Promise<void> {
    const last = this.#found;
    const found = await this.#find();
    if (last !== null)
      this.#loss = lossSince({ ...last, sequence: this.#position }, found.identity, found.sequence);
    // After a loss this client goes on with what is there.
    if (this.#loss !== null) this.#position = 0n;
    this.#found = found;
  }

  /** What the table says, once the server that answers is the last one it names. */
  async #find(): Promise<Found> {
    const { calls, env, statements } = this.#context;
    for (;;) {
      const rows = await calls.query(this.#lookUp, []);
      const [, stamp = "", serverId = "", position = "", start = "", version, value = ""] = rows[0] ?? [];
      const stored = decodeIdentity(value);
      const server = { serverId, nowMs: timeMsOf(rows), sequence: positionFrom(start) };
      const identity = nextIdentity(stored, server, randomId(env));
      if (identity === stored)
        return { identity, stamp, serverId, dataId: identity.dataId, sequence: positionFrom(position) };
      const next = encodeIdentity(identity);
      const columns = [IDENTITY_KEY.tenant, IDENTITY_KEY.name, version || null, next].map((each) => [each]);
      await calls.query(statements.write, columns.map(arrayLiteral));
    }
  }
}
