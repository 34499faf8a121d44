/** Reads: one statement, one snapshot, so no key is older than another. */
import type { LeaseKey } from "../../core/index.ts";
import { ABSENT, type ReadReply, type StoredRecord } from "../contract.ts";
import { storedRecordFrom } from "./columns.ts";
import { type Row, type SqlDriver, textOf } from "./driver.ts";
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
    return timeOf(row);
  }

  /** A lone key goes as a plain statement: arrays and a join cost a fifth of its speed. */
  async #readOne(key: LeaseKey): Promise<ReadReply> {
    const [row] = await this.#driver.query(this.#statements.readOne, [key.tenant, key.name]);
    return { storeTimeMs: timeOf(row), records: [storedIn(row, key)] };
  }

  async #readMany(keys: readonly LeaseKey[]): Promise<ReadReply> {
    const rows = await this.#driver.query(this.#statements.readMany, [
      arrayLiteral(keys.map(({ tenant }) => tenant)),
      arrayLiteral(keys.map(({ name }) => name)),
    ]);
    const byPlace = new Map(rows.map((row) => [Number(textOf(row, "place")), row]));
    const records = keys.map((key, index) => storedIn(byPlace.get(index + 1), key));
    return { storeTimeMs: timeOf(rows[0]), records };
  }
}

export function timeOf(row: Row | undefined): number {
  return Number(textOf(row, "now"));
}

function storedIn(row: Row | undefined, key: LeaseKey): StoredRecord {
  const text = textOf(row, "row");
  return text === null ? ABSENT : storedRecordFrom(text, key);
}
