/** Long work in pieces, so that this process's timers, sockets and signals are never kept waiting. */
import { delay, type Env } from "../../env/index.ts";

/** A pause takes a millisecond, the shortest timer there is: seldom enough not to cost much. */
const TURN_MS = 8;

export class Pace {
  readonly #env: Env;
  #turnEndsAtMs: number;

  constructor(env: Env) {
    this.#env = env;
    this.#turnEndsAtMs = env.monotonicMs() + TURN_MS;
  }

  /** Between pieces of a millisecond or two: gives the event loop its turn if it is due. */
  async keep(): Promise<void> {
    if (this.#env.monotonicMs() < this.#turnEndsAtMs) return;
    await delay(this.#env, 0);
    this.#turnEndsAtMs = this.#env.monotonicMs() + TURN_MS;
  }
}
