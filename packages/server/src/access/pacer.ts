/**
 * Does work a piece at a time, each in a turn of the event loop of its own. A piece that took long is followed by a rest of
 * the same length: a command of somebody else takes several turns, and must not meet a piece in each of them.
 */
import type { Env } from "solehold/internal";

const LONG_MS = 0.5;
/** The rest was long enough when the machine slept, or something else held up the process. */
const LONGEST_REST_MS = 20;

export class Pacer {
  readonly #env: Env;
  /** False when there was nothing to do. */
  readonly #piece: () => boolean;
  #isRunning = false;

  constructor(env: Env, piece: () => boolean) {
    this.#env = env;
    this.#piece = piece;
  }

  /** There is something to do. */
  wake(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#env.timer(0, () => this.#step());
  }

  #step(): void {
    const begunMs = this.#env.monotonicMs();
    if (!this.#piece()) {
      this.#isRunning = false;
      return;
    }
    // What it began in this turn has been done by the next one.
    this.#env.timer(0, () => {
      const tookMs = this.#env.monotonicMs() - begunMs;
      if (tookMs <= LONG_MS) this.#step();
      else this.#env.timer(Math.min(tookMs, LONGEST_REST_MS), () => this.#step());
    });
  }
}
