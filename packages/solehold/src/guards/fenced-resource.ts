/**
 * A guard for something in this process: it accepts writes whose fence is at least the newest it has
 * seen, and refuses older ones. The check and the write are one step: no other write can come between.
 */
import type { LeaseKey } from "../core/index.ts";
import { StaleFenceError } from "./stale-fence-error.ts";

/** Anything that carries a fence: a Lease, or what was sent along with a request. */
export interface Fenced {
  readonly key: LeaseKey;
  readonly fence: bigint;
}

export class FencedResource<State> {
  #state: State;
  #newestFence = 0n;

  constructor(initial: State) {
    this.#state = initial;
  }

  get state(): State {
    return this.#state;
  }

  get newestFence(): bigint {
    return this.#newestFence;
  }

  /**
   * Replaces the state by what `change` makes of it. Equal or newer fences pass, older ones throw
   * StaleFenceError. `change` is synchronous on purpose: nothing can happen between check and write. If it
   * throws, the state stays, but the fence counts as seen.
   */
  write(by: Fenced, change: (state: State) => State): State {
    this.raise(by);
    this.#state = change(this.#state);
    return this.#state;
  }

  /** From here on no older fence passes. For a new holder, before it reads. */
  raise(by: Fenced): void {
    if (by.fence < this.#newestFence) throw new StaleFenceError(by.key, by.fence, this.#newestFence);
    this.#newestFence = by.fence;
  }
}
