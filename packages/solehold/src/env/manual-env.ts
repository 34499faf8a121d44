/**
 * A world that moves only when a test says so. Time stands still until `advance`; timers with a delay fire in order
 * of time, then of creation; randomness comes from a seed. Suspends and wall-clock steps can be played.
 */
import type { Env, Timer } from "./env.ts";

interface PendingTimer {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

export class ManualEnv implements Env {
  #monotonicMs: number;
  #wallMs: number;
  #order = 0;
  #random: number;
  readonly #timers = new Set<PendingTimer>();

  constructor(
    start: { readonly monotonicMs?: number; readonly wallMs?: number; readonly seed?: number } = {},
  ) {
    this.#monotonicMs = start.monotonicMs ?? 1_000;
    this.#wallMs = start.wallMs ?? 1_700_000_000_000;
    this.#random = (start.seed ?? 1) >>> 0;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  timer(delayMs: number, callback: () => void): Timer {
    this.#order += 1;
    const pending = { dueMs: this.#monotonicMs + Math.max(0, delayMs), order: this.#order, callback };
    this.#timers.add(pending);
    // Due without an advance, as in the real world: in a later turn of the event loop.
    if (delayMs <= 0) setImmediate(() => void (this.#timers.delete(pending) && callback()));
    return { cancel: () => void this.#timers.delete(pending) };
  }

  defer(callback: () => void): void {
    // From a timer or a socket a tick would come before promises that are already resolved.
    queueMicrotask(() => process.nextTick(callback));
  }

  randomBytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => Math.floor(this.random() * 256));
  }

  /** Mulberry32: small, seeded, good enough to tell nonces apart. Not for secrets. */
  random(): number {
    this.#random = (this.#random + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#random ^ (this.#random >>> 15), 1 | this.#random);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** How many timers are pending: zero after a clean shutdown. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Lets both clocks run, firing what falls due, and lets promises settle in between. */
  async advance(durationMs: number): Promise<void> {
    const targetMs = this.#monotonicMs + durationMs;
    await settle();
    for (let next = this.#nextDue(targetMs); next !== null; next = this.#nextDue(targetMs)) {
      this.#moveTo(next.dueMs);
      this.#timers.delete(next);
      next.callback();
      await settle();
    }
    this.#moveTo(targetMs);
    await settle();
  }

  /** The machine sleeps: the wall clock moves, the monotonic clock and the timers stand still. */
  suspend(durationMs: number): void {
    this.#wallMs += durationMs;
  }

  /** Somebody sets the wall clock. */
  stepWall(byMs: number): void {
    this.#wallMs += byMs;
  }

  /** The process is busy or stopped: both clocks move, no timer fires. */
  pause(durationMs: number): void {
    this.#moveTo(this.#monotonicMs + durationMs);
  }

  /** Never back: a callback may have paused the world beyond where an advance wanted to go. */
  #moveTo(monotonicMs: number): void {
    if (monotonicMs <= this.#monotonicMs) return;
    this.#wallMs += monotonicMs - this.#monotonicMs;
    this.#monotonicMs = monotonicMs;
  }

  #nextDue(targetMs: number): PendingTimer | null {
    let next: PendingTimer | null = null;
    for (const timer of this.#timers) {
      if (timer.dueMs > targetMs) continue;
      if (
        next === null ||
        timer.dueMs < next.dueMs ||
        (timer.dueMs === next.dueMs && timer.order < next.order)
      ) {
        next = timer;
      }
    }
    return next;
  }
}

/** Until no promise chain in this process has more to do without real I/O. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
