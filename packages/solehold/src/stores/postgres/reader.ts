/**
 * Reads: one statement, one snapshot, so no key is older than another.
 *
 * An end may be seen before it is safe (see `early` in statements.ts), also by others than who sent it: another server
 * may be asked for the same release. So what shows a lease that was given back is answered once that is safe.
 */
import type { LeaseKey } from "../../core/index.ts";
import type { ReadReply, StoredRecord } from "../../store/index.ts";
import type { SqlDriver } from "./driver.ts";
import type { KnownRows } from "./plain-ends.ts";
import { placedReplyFrom, storedFrom, timedReplyFrom, wholeMs } from "./replies.ts";
import { arrayLiteral } from "./sql-text.ts";
import type { Statement, Statements } from "./statements.ts";
import { showsGivenBack } from "./writes.ts";

export interface ReaderOptions {
  readonly driver: SqlDriver;
  readonly statements: Statements;
  readonly known: KnownRows;
  /** Whether the server is asked when what was seen is safe. */
  readonly confirms: "yes" | "no";
}

export class Reader {
  readonly #driver: SqlDriver;
  readonly #statements: Statements;
  readonly #known: KnownRows;
  readonly #confirms: "yes" | "no";

  constructor({ driver, statements, known, confirms }: ReaderOptions) {
    this.#driver = driver;
    this.#statements = statements;
    this.#known = known;
    this.#confirms = confirms;
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const reply = await this.look(keys);
    if (this.#confirms === "yes" && reply.records.some(showsGivenBack))
      await this.#driver.query(this.#statements.confirm, []);
    return reply;
  }

  /** For those who tell what they see and answer nobody: it may not be safe. */
  async look(keys: readonly LeaseKey[]): Promise<ReadReply> {
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
