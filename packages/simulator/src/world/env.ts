/**
 * The `Env` of one process in the simulated world. Timers run on the machine's monotonic clock, so they
 * stand while it is suspended and wait while it is paused. When the process dies, nothing of it ever runs
 * again: its timers, its deferred work and the answers to its questions are gone.
 */
import type { Env, Timer } from "solehold/internal";
import type { Machine } from "./machine.ts";
import type { RandomStream } from "./random.ts";
import type { World } from "./world.ts";

/** A timer never fires before its time, whatever doubles do. */
const ROUNDING_MS = 1e-6;

export class SimulatedEnv implements Env {
  readonly machine: Machine;
  readonly #world: World;
  readonly #random: RandomStream;
  readonly #latestMs: number;
  /** With what sets each anew. */
  readonly #pending = new Map<Timer, () => void>();
  readonly #onKill: (() => void)[] = [];
  /** The world's time; Infinity while it lives. */
  #diedMs = Number.POSITIVE_INFINITY;

  constructor(options: {
    readonly world: World;
    readonly machine: Machine;
    readonly random: RandomStream;
    /** Timers fire up to this much late. */
    readonly timerLatenessMs: number;
  }) {
    this.#world = options.world;
    this.machine = options.machine;
    this.#random = options.random;
    this.#latestMs = options.timerLatenessMs;
    this.machine.onRate(() => {
      for (const again of [...this.#pending.values()]) again();
    });
  }

  get dead(): boolean {
    return this.#diedMs < Number.POSITIVE_INFINITY;
  }

  get diedMs(): number {
    return this.#diedMs;
  }

  get pendingTimers(): number {
    return this.#pending.size;
  }

  /** The process is gone. */
  kill(): void {
    this.#diedMs = this.#world.nowMs;
    for (const timer of [...this.#pending.keys()]) timer.cancel();
    for (const listener of this.#onKill.splice(0)) listener();
  }

  /** Calls back when the process is gone: what its kernel does for it, such as closing its connections. */
  onKill(listener: () => void): void {
    this.#onKill.push(listener);
  }

  monotonicMs(): number {
    return this.machine.clock.monotonicMs();
  }

  wallMs(): number {
    return this.machine.clock.wallMs();
  }

  timer(delayMs: number, callback: () => void): Timer {
    const late = this.#latestMs === 0 ? 0 : this.#random.between(0, this.#latestMs);
    const dueMs = this.monotonicMs() + Math.max(0, delayMs) + late;
    let scheduled = this.#arm(dueMs, () => fire());
    const timer: Timer = {
      cancel: () => {
        scheduled.cancel();
        this.#pending.delete(timer);
      },
    };
    const fire = (): void => {
      if (this.dead) return;
      // The clock stood for a while: the rest of the time is still to pass.
      if (this.monotonicMs() < dueMs) {
        scheduled = this.#arm(dueMs, fire);
        return;
      }
      this.#pending.delete(timer);
      callback();
    };
    this.#pending.set(timer, () => {
      scheduled.cancel();
      scheduled = this.#arm(dueMs, fire);
    });
    return timer;
  }

  defer(callback: () => void): void {
    if (!this.dead) this.#world.defer(this, callback);
  }

  randomBytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let index = 0; index < length; index += 1) bytes[index] = this.#random.next() >>> 24;
    return bytes;
  }

  random(): number {
    return this.#random.fraction();
  }

  #arm(dueMs: number, fire: () => void): Timer {
    const { clock } = this.machine;
    const inMs = (dueMs - clock.monotonicMs()) / clock.rate + ROUNDING_MS;
    return this.#world.schedule(this.#world.nowMs + inMs, this.machine, "timer", fire);
  }
}
