/** The world as a machine sees it whose wall clock is set wrong. */
import type { Env, Timer, TimerOptions } from "../env/index.ts";

export class ShiftedEnv implements Env {
  readonly #env: Env;
  #byMs: number;

  constructor(env: Env, byMs: number) {
    this.#env = env;
    this.#byMs = byMs;
  }

  /** Somebody sets the clock. */
  step(byMs: number): void {
    this.#byMs += byMs;
  }

  monotonicMs(): number {
    return this.#env.monotonicMs();
  }

  wallMs(): number {
    return this.#env.wallMs() + this.#byMs;
  }

  timer(delayMs: number, callback: () => void, options?: TimerOptions): Timer {
    return this.#env.timer(delayMs, callback, options);
  }

  defer(callback: () => void): void {
    this.#env.defer(callback);
  }

  randomBytes(length: number): Uint8Array {
    return this.#env.randomBytes(length);
  }

  random(): number {
    return this.#env.random();
  }
}
