/**
 * Randomness of a simulated run. Every component draws from a stream of its own, named after it, so that
 * one more draw in one place does not reshuffle all the others.
 *
 * What can be taken away from a run (a fault, an operation) is drawn with `fires`, which gives the draw a
 * name that is the same whenever the run is repeated. A shrinker replays the seed with only some of those
 * names allowed; the draw itself is made in any case, so the rest of the run stays as it was.
 */

export class RandomStream {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, label: string) {
    const hash = hashText(label, seed ^ 0x9e3779b9);
    this.#a = seed >>> 0;
    this.#b = hash;
    this.#c = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
    for (let warmUp = 0; warmUp < 12; warmUp += 1) this.next();
  }

  /** 32 random bits (the small fast counter generator sfc32). */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return sum >>> 0;
  }

  /** From 0 to below 1. */
  fraction(): number {
    return this.next() / 2 ** 32;
  }

  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1));
  }

  between(least: number, most: number): number {
    return least + this.fraction() * (most - least);
  }

  /** Mostly small, now and then large. */
  exponential(mean: number): number {
    return -Math.log(1 - this.fraction()) * mean;
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<Value>(values: readonly Value[]): Value {
    const value = values[Math.floor(this.fraction() * values.length)];
    if (value === undefined) throw new RangeError("nothing to pick from");
    return value;
  }
}

/** Which of the removable draws may happen: all of them, or only those with these names. */
export type Allowed = ReadonlySet<string> | "all";

export class Choices {
  readonly seed: number;
  readonly #allowed: Allowed;
  readonly #streams = new Map<string, RandomStream>();
  readonly #counts = new Map<string, number>();
  /** The names of the removable draws that happened, in order. */
  readonly fired: string[] = [];

  constructor(seed: number, allowed: Allowed = "all") {
    this.seed = seed;
    this.#allowed = allowed;
  }

  stream(label: string): RandomStream {
    const known = this.#streams.get(label);
    if (known !== undefined) return known;
    const stream = new RandomStream(this.seed, label);
    this.#streams.set(label, stream);
    return stream;
  }

  /** True with this probability, unless the shrinker took this one away. */
  fires(label: string, probability: number): boolean {
    if (probability <= 0) return false;
    const drawn = this.stream(label).chance(probability);
    const count = (this.#counts.get(label) ?? 0) + 1;
    this.#counts.set(label, count);
    if (!drawn) return false;
    const name = `${label}#${count}`;
    if (this.#allowed !== "all" && !this.#allowed.has(name)) return false;
    this.fired.push(name);
    return true;
  }
}

/** FNV-1a over UTF-16 units. */
export function hashText(text: string, start = 0x811c9dc5): number {
  let hash = start >>> 0;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}
