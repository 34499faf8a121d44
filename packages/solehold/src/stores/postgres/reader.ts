/**
 * Reads: one statement, one snapshot, so no key is older than another.
 *
 * An end may be seen before it is safe (see `early` in statements.ts). Whoever sent it and got no answer looks whether it
 * was done; then what is seen counts only once it is safe.
 */
import type { LeaseKey } from "../../core/index.ts";
import type { ReadReply, StoredRecord } from "../contract.ts";
import type { SqlDriver } from "./driver.ts";
import type { KnownRows } from "./plain-ends.ts";
import { placedReplyFrom, storedFrom, timedReplyFrom, wholeMs } from "./replies.ts";
import { arrayLiteral } from "./sql-text.ts";
import type { Statement, Statements } from "./statements.ts";

export class Reader {
  readonly #driver: SqlDriver;
  readonly #statements: Statements;
  readonly #known: KnownRows;
  /** How many ends got no answer since all was known to be safe. */
  #doubts = 0;

  constructor(driver: SqlDriver, statements: Statements, known: KnownRows) {
    this.#driver = driver;
    this.#statements = statements;
    this.#known = known;
  }

  /** What is seen from now on may not be safe. */
  doubt(): void {
    this.#doubts += 1;
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const doubts = this.#doubts;
    const reply = await this.#read(keys);
    if (doubts > 0) {
      await this.#driver.query(this.#statements.confirm, []);
      if (this.#doubts === doubts) this.#doubts = 0;
    }
    return reply;
  }

  async #read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const [first] = keys;
    if (first === undefined) return { storeTimeMs: await this.now(), records: [] };
    const { readOne, readTwo } = this.#statements;
    if (keys.length === 1) return this.#readFew(readOne, keys);
    return keys.length === 2 ? this.#readFew(readTwo, keys) : this.#readMany(keys);
  }

  async now(): Promise<number> {
    const [row] = await this.#driver.query(this.#statements.clock, []);
    return timedReplyFrom(row).timeMs;
  }

  /**
   * A lone key, or a key and the floor of its tenant, goes as a plain statement: arrays and a join cost a
   * fifth of its speed.
   */
  async #readFew(statement: Statement, keys: readonly LeaseKey[]): Promise<ReadReply> {
    const [[time, ...rows] = []] = await this.#driver.query(
      statement,
      keys.flatMap(({ tenant, name }) => [tenant, name]),
    );
    return {
      storeTimeMs: wholeMs(time),
      records: keys.map((key, index) => this.#stored(rows[index] ?? null, key)),
    };
  }

  async #readMany(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const rows = await this.#driver.query(this.#statements.readMany, [
      arrayLiteral(keys.map(({ tenant }) => tenant)),
      arrayLiteral(keys.map(({ name }) => name)),
    ]);
    const replies = new Map(rows.map(placedReplyFrom).map((reply) => [reply.place, reply]));
    const records = keys.map((key, index) => this.#stored(replies.get(index + 1)?.rest ?? null, key));
    return { storeTimeMs: timedReplyFrom(rows[0]).timeMs, records };
  }

  #stored(row: string | null, key: LeaseKey): StoredRecord {
    const stored = storedFrom(row, key);
    if (stored.kind === "found") this.#known.note(key, stored.version, stored.record);
    return stored;
  }
}
