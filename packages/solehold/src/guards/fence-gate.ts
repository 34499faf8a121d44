/**
 * One at a time per key, from the check of the fence to the end of the work, so no older work can end after
 * newer work began. Older fences than the newest seen are refused, also those that waited for their turn
 * while a newer one passed.
 *
 * It guards one process. What it has seen outlives the process only with a memory of your own.
 */
import { keyId, type LeaseKey } from "../core/index.ts";
import type { Fenced } from "./fenced-resource.ts";
import { StaleFenceError } from "./stale-fence-error.ts";

/** Where the newest fence of a resource is kept over restarts. Called by one at a time per resource. */
export interface FenceMemory {
  load(key: LeaseKey): Promise<bigint>;
  save(key: LeaseKey, fence: bigint): Promise<void>;
}

interface Turns {
  last: Promise<void>;
  newest: bigint | null;
}

export class FenceGate {
  readonly #memory: FenceMemory | null;
  readonly #turns = new Map<string, Turns>();

  constructor(options: { readonly memory?: FenceMemory } = {}) {
    this.#memory = options.memory ?? null;
  }

  /** Resolves when it is the caller's turn, with the function that ends it. Rejects with StaleFenceError. */
  async enter(by: Fenced): Promise<() => void> {
    const turns = this.#turnsOf(by.key);
    const before = turns.last;
    let leave: () => void = () => undefined;
    turns.last = new Promise<void>((resolve) => {
      leave = resolve;
    });
    try {
      await before;
      await this.#pass(turns, by);
      return leave;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** From here on no older fence passes. Waits until older work that is inside has ended. */
  async raise(by: Fenced): Promise<void> {
    await this.run(by, async () => undefined);
  }

  /** `work` alone inside. */
  async run<T>(by: Fenced, work: () => Promise<T>): Promise<T> {
    const leave = await this.enter(by);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  async #pass(turns: Turns, { key, fence }: Fenced): Promise<void> {
    turns.newest ??= (await this.#memory?.load(key)) ?? 0n;
    if (fence < turns.newest) throw new StaleFenceError(key, fence, turns.newest);
    if (fence === turns.newest) return;
    await this.#memory?.save(key, fence);
    turns.newest = fence;
  }

  #turnsOf(key: LeaseKey): Turns {
    const id = keyId(key);
    const turns = this.#turns.get(id) ?? { last: Promise.resolve(), newest: null };
    this.#turns.set(id, turns);
    return turns;
  }
}
