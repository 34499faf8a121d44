/**
 * A map that forgets what was not set for long once it is full. Two generations: when the young one has
 * filled half of the capacity it becomes the old one, and the old one is dropped whole. An entry is kept for
 * at least half of the capacity in other entries, and nothing is moved about on the way, which would cost
 * more than all else that is done with an entry.
 */
export class BoundedMap<Value> {
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();
  readonly #half: number;

  constructor(capacity: number) {
    this.#half = Math.max(1, Math.floor(capacity / 2));
  }

  /** How many are kept, those that were set again counted twice: zero exactly when there are none. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(id: string): Value | undefined {
    return this.#young.get(id) ?? this.#old.get(id);
  }

  /** Setting counts as use; reading does not: reads are far more frequent and the order is only a guide. */
  set(id: string, value: Value): void {
    this.#young.set(id, value);
    if (this.#young.size < this.#half) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  delete(id: string): void {
    this.#young.delete(id);
    this.#old.delete(id);
  }
}
