/**
 * Whether a write that was done has to tell the store's time, where that costs something.
 *
 * Between replies a client knows the store's time as an interval, which widens only by the drift of two clocks: in the
 * time that is meant here by less than the clock's own resolution. So a store that told its time just now may leave it
 * out of the answer to a write that was done. It may not where the answer shows what somebody else wrote: whoever
 * judges a record by the store's time must have got a time no older than the record.
 *
 * A clock that jumps is noticed with the next time that is told, so it is noticed this much later at most.
 */
import type { Env } from "../../env/index.ts";

const REST_MS = 20;

export class ToldTime {
  readonly #env: Env;
  #sentMs = Number.NEGATIVE_INFINITY;

  constructor(env: Env) {
    this.#env = env;
  }

  /** Whether a call that is sent now may do without. */
  get isFresh(): boolean {
    return this.#env.monotonicMs() - this.#sentMs < REST_MS;
  }

  /** The reply to a call that was sent at this instant told it. */
  told(sentMs: number): void {
    if (sentMs > this.#sentMs) this.#sentMs = sentMs;
  }
}
