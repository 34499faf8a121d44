/**
 * The guard at a door: from the check of the fence to the end of the work nobody else is inside, so no
 * older work can end after newer work began. Older fences than the newest seen are turned away, also those
 * that waited at the door while a newer one passed.
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

interface Door {
  last: Promise<void>;
  newest: bigint | null;
}

export class FenceGate {
  readonly #memory: FenceMemory | null;
  readonly #doors = new Map<string, Door>();

  constructor(options: { readonly memory?: FenceMemory } = {}) {
    this.#memory = options.memory ?? null;
  }

  /** Resolves when it is the caller's turn, with the function that ends it. Rejects with StaleFenceError. */
  async enter(by: Fenced): Promise<() => void> {
    const door = this.#doorOf(by.key);
    const before = door.last;
    let leave: () => void = () => undefined;
    door.last = new Promise<void>((resolve) => {
      leave = resolve;
    });
    try {
      await before;
      await this.#pass(door, by);
      return leave;
    } catch (error) {
      leave();
      throw error;
    }
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

  async #pass(door: Door, { key, fence }: Fenced): Promise<void> {
    door.newest ??= (await this.#memory?.load(key)) ?? 0n;
    if (fence < door.newest) throw new StaleFenceError(key, fence, door.newest);
    if (fence === door.newest) return;
    await this.#memory?.save(key, fence);
    door.newest = fence;
  }

  #doorOf(key: LeaseKey): Door {
    const id = keyId(key);
    const door = this.#doors.get(id) ?? { last: Promise.resolve(), newest: null };
    this.#doors.set(id, door);
    return door;
  }
}
