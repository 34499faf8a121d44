/** Reads: one statement, one snapshot, so no key is older than another. */
import type { LeaseKey } from "../../core/index.ts";
import type { ReadReply } from "../contract.ts";
import type { SqlDriver } from "./driver.ts";
import { placedReplyFrom, storedFrom, timedReplyFrom } from "./replies.ts";
import { arrayLiteral } from "./sql-text.ts";
import type { Statements } from "./statements.ts";

export class Reader {
  readonly #driver: SqlDriver;
  readonly #statements: Statements;

  constructor(driver: SqlDriver, statements: Statements) {
    this.#driver = driver;
    this.#statements = statements;
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const [first] = keys;
    if (first === undefined) return { storeTimeMs: await this.now(), records: [] };
    return keys.length === 1 ? this.#readOne(first) : this.#readMany(keys);
  }

  async now(): Promise<number> {
    const [row] = await this.#driver.query(this.#statements.clock, []);
    return timedReplyFrom(row).timeMs;
  }

  /** A lone key goes as a plain statement: arrays and a join cost a fifth of its speed. */
  async #readOne(key: LeaseKey): Promise<ReadReply> {
    const [row] = await this.#driver.query(this.#statements.readOne, [key.tenant, key.name]);
    const { timeMs, rest } = timedReplyFrom(row);
    return { storeTimeMs: timeMs, records: [storedFrom(rest, key)] };
  }

  async #readMany(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const rows = await this.#driver.query(this.#statements.readMany, [
      arrayLiteral(keys.map(({ tenant }) => tenant)),
      arrayLiteral(keys.map(({ name }) => name)),
    ]);
    const replies = new Map(rows.map(placedReplyFrom).map((reply) => [reply.place, reply]));
    const records = keys.map((key, index) => storedFrom(replies.get(index + 1)?.rest ?? null, key));
    return { storeTimeMs: timedReplyFrom(rows[0]).timeMs, records };
  }
}
