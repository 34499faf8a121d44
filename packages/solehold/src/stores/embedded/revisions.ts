/**
 * Where versions come from: whole numbers that are never given out twice, by whichever process. A process
 * reserves a block of them in the database and numbers its writes from it, so a write needs no look at a
 * shared counter. What is left of a block when the process ends is lost; there are 2^53 of them.
 */
import { type Databases, updateMeta } from "./database.ts";
import { REVISION_KEY } from "./state.ts";

export const REVISION_BLOCK = 2 ** 20;

export class Revisions {
  readonly #databases: Databases;
  readonly #blockSize: number;
  #next = 0;
  #end = 0;
  #refilling: Promise<void> | null = null;

  constructor(databases: Databases, blockSize: number) {
    this.#databases = databases;
    this.#blockSize = blockSize;
  }

  has(count: number): boolean {
    return this.#next + count <= this.#end;
  }

  /** The first of `count` numbers in a row. Only after `has`. */
  take(count: number): number {
    const first = this.#next;
    this.#next += count;
    return first;
  }

  /** One more block, of at least `count`. Callers that meet here share it, so ask `has` again after. */
  async refill(count: number): Promise<void> {
    this.#refilling ??= this.#reserveBlock(count).finally(() => {
      this.#refilling = null;
    });
    await this.#refilling;
  }

  async #reserveBlock(count: number): Promise<void> {
    const size = Math.max(this.#blockSize, count);
    let first = 0;
    await updateMeta(this.#databases, REVISION_KEY, (text) => {
      first = Number(text);
      return String(first + size);
    });
    this.#next = first;
    this.#end = first + size;
  }
}
