/**
 * The port through which time, timers and randomness enter. Nothing outside this folder reads a clock,
 * sets a timer or draws a random number, so a simulation can stand in for the whole world.
 */
import type { ClockReading } from "../core/index.ts";

export interface Timer {
  /** After this the callback never runs. Cancelling twice is fine. */
  cancel(): void;
}

export interface TimerOptions {
  /** True keeps the process from ending while the timer is pending. Libraries should not by default. */
  readonly keepAlive?: boolean;
}

export interface Env {
  /** Never goes back; shared by all processes of a machine; stands still while it is suspended. */
  monotonicMs(): number;
  /** Milliseconds since 1970 as the machine believes; may step in both directions. */
  wallMs(): number;
  /**
   * Calls back once, no earlier than after `delayMs` on the monotonic clock. Any length is allowed. With 0 it is a later turn
   * of the event loop: what arrived meanwhile is read before.
   */
  timer(delayMs: number, callback: () => void, options?: TimerOptions): Timer;
  /** Calls back at the end of the current turn, after all work that is already queued. */
  defer(callback: () => void): void;
  /** Cryptographic. */
  randomBytes(length: number): Uint8Array;
  /** From 0 to below 1, for jitter only. */
  random(): number;
}

export function readClocks(env: Env): ClockReading {
  return { monotonicMs: env.monotonicMs(), wallMs: env.wallMs() };
}

/** 128 random bits as 22 characters of base64url: for tokens and nonces. */
export function randomId(env: Env): string {
  const { buffer, byteOffset, length } = env.randomBytes(16);
  return Buffer.from(buffer, byteOffset, length).toString("base64url");
}

/** `delayMs` stretched or shrunk at random by at most `ratio`. */
export function jittered(env: Env, delayMs: number, ratio: number): number {
  return delayMs * (1 + (env.random() * 2 - 1) * ratio);
}

/** Resolves after `delayMs`, or at once when the signal aborts; the caller looks at the signal. */
export function delay(env: Env, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      timer.cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = env.timer(delayMs, done, { keepAlive: true });
    signal?.addEventListener("abort", done, { once: true });
  });
}
