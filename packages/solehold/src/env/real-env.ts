/** The real world: the machine's clocks, Node's timers, the operating system's randomness. */
import { randomBytes } from "node:crypto";
import type { Env, Timer, TimerOptions } from "./env.ts";

/** Node fires longer timers at once. */
const LONGEST_NATIVE_MS = 2 ** 31 - 1;
const NANOSECONDS_PER_MS = 1e6;
const NONCE_POOL_BYTES = 4096;

class RealTimer implements Timer {
  #handle: NodeJS.Timeout | undefined;

  constructor(delayMs: number, callback: () => void, options: TimerOptions | undefined) {
    this.#arm(monotonicNow() + delayMs, callback, options);
  }

  /** Node's timers may fire most of a millisecond early: the clock says when it is time, not the timer. */
  #arm(dueMs: number, callback: () => void, options: TimerOptions | undefined): void {
    // Node 24 warns of a delay below zero.
    const stepMs = Math.max(0, Math.ceil(Math.min(dueMs - monotonicNow(), LONGEST_NATIVE_MS)));
    const next = (): void => (monotonicNow() < dueMs ? this.#arm(dueMs, callback, options) : callback());
    this.#handle = setTimeout(next, stepMs);
    if (options?.keepAlive !== true) this.#handle.unref();
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }
}

function monotonicNow(): number {
  return Number(process.hrtime.bigint()) / NANOSECONDS_PER_MS;
}

/** After what has arrived was read. A timer of Node would come a millisecond later. */
function nextTurn(callback: () => void): Timer {
  const handle = setImmediate(callback);
  return { cancel: () => clearImmediate(handle) };
}

class RealEnv implements Env {
  #pool = new Uint8Array(0);
  #poolOffset = 0;

  monotonicMs(): number {
    return monotonicNow();
  }

  wallMs(): number {
    return Date.now();
  }

  timer(delayMs: number, callback: () => void, options?: TimerOptions): Timer {
    if (delayMs <= 0) return nextTurn(callback);
    return new RealTimer(delayMs, callback, options);
  }

  defer(callback: () => void): void {
    // From a timer or a socket a tick would come before promises that are already resolved.
    queueMicrotask(() => process.nextTick(callback));
  }

  /** Drawn from a pool: one system call serves hundreds of nonces. */
  randomBytes(length: number): Uint8Array {
    if (this.#poolOffset + length > this.#pool.length) {
      this.#pool = randomBytes(Math.max(NONCE_POOL_BYTES, length));
      this.#poolOffset = 0;
    }
    const bytes = this.#pool.subarray(this.#poolOffset, this.#poolOffset + length);
    this.#poolOffset += length;
    return bytes;
  }

  random(): number {
    return Math.random();
  }
}

export const realEnv: Env = new RealEnv();
