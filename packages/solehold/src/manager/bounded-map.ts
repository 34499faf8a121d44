/** A map that forgets the entry that was used longest ago once it is full. */
export class BoundedMap<Value> {
  readonly #entries = new Map<string, Value>();
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(id: string): Value | undefined {
    return this.#entries.get(id);
  }

  /** Setting counts as use; reading does not: reads are far more frequent and the order is only a guide. */
  set(id: string, value: Value): void {
    if (this.#entries.delete(id) === false && this.#entries.size >= this.#capacity) {
      const oldest = this.#entries.keys().next();
      if (oldest.done !== true) this.#entries.delete(oldest.value);
    }
    this.#entries.set(id, value);
  }

  delete(id: string): void {
    this.#entries.delete(id);
  }

  clear(): void {
    this.#entries.clear();
  }
}
