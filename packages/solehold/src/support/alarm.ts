/**
 * One timer for many instants: it rings at the first of them. For those who plan far more instants than ever come: an
 * instant that is not needed any more costs nothing, but that the alarm may ring once in vain.
 */
import type { Env, Timer, TimerOptions } from "../env/index.ts";

export class Alarm {
  readonly #env: Env;
  readonly #onRing: () => void;
  readonly #options: TimerOptions;
  #timer: Timer | null = null;
  #atMs = Number.POSITIVE_INFINITY;

  /** `onRing` sets it again, for what is left. */
  constructor(env: Env, onRing: () => void, options: TimerOptions = {}) {
    this.#env = env;
    this.#onRing = onRing;
    this.#options = options;
  }

  /** Rings at this instant of the monotonic clock, unless it rings before. */
  setBy(atMs: number): void {
    if (atMs >= this.#atMs) return;
    this.#timer?.cancel();
    this.#atMs = atMs;
    const ring = (): void => {
      this.#atMs = Number.POSITIVE_INFINITY;
      this.#onRing();
    };
    this.#timer = this.#env.timer(Math.max(0, atMs - this.#env.monotonicMs()), ring, this.#options);
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#atMs = Number.POSITIVE_INFINITY;
  }
}
