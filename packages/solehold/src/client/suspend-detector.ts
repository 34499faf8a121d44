/**
 * Notices that the machine slept: the wall clock moved on while the monotonic clock, and with it every
 * timer, stood still. Leases are then checked at once instead of when their late timers fire.
 */
import type { ClockReading } from "../core/index.ts";
import { type Env, readClocks, type Timer } from "../env/index.ts";

const CHECK_EVERY_MS = 1_000;
/** Both clocks are read at once and slewing is far slower: more than this was a sleep or a step. */
const TOLERATED_GAP_MS = 5;

export interface Suspendable {
  /** The machine slept, or somebody set its clock. */
  afterSuspend(): void;
}

/** Whether the machine slept, or somebody set its clock, between the two readings. */
export function movedApart(before: ClockReading, now: ClockReading): boolean {
  const gapMs = now.wallMs - before.wallMs - (now.monotonicMs - before.monotonicMs);
  return Math.abs(gapMs) > TOLERATED_GAP_MS;
}

export class SuspendWatch {
  readonly #env: Env;
  readonly #listeners = new Set<Suspendable>();
  #timer: Timer | null = null;

  constructor(env: Env) {
    this.#env = env;
  }

  add(listener: Suspendable): void {
    this.#listeners.add(listener);
    if (this.#timer === null) this.#arm();
  }

  /** The timer stays until it fires: leases come and go far more often than it does. */
  remove(listener: Suspendable): void {
    this.#listeners.delete(listener);
  }

  close(): void {
    this.#listeners.clear();
    this.#timer?.cancel();
    this.#timer = null;
  }

  #arm(): void {
    const before = readClocks(this.#env);
    this.#timer = this.#env.timer(CHECK_EVERY_MS, () => {
      const hasMoved = movedApart(before, readClocks(this.#env));
      this.#timer = null;
      if (this.#listeners.size > 0) this.#arm();
      if (hasMoved) for (const each of [...this.#listeners]) each.afterSuspend();
    });
  }
}
