import { type Env, realEnv } from "../../src/env/index.ts";

/** The real world, but for a monotonic clock that stands still unless a test moves it. */
export function standingClock(): { readonly env: Env; advance(byMs: number): void } {
  let monotonicMs = 1_000;
  const env: Env = {
    monotonicMs: () => monotonicMs,
    wallMs: () => realEnv.wallMs(),
    timer: (delayMs, callback, options) => realEnv.timer(delayMs, callback, options),
    defer: (callback) => realEnv.defer(callback),
    randomBytes: (length) => realEnv.randomBytes(length),
    random: () => realEnv.random(),
  };
  return {
    env,
    advance: (byMs) => {
      monotonicMs += byMs;
    },
  };
}

/** Whether it is a time of today, in milliseconds. */
export function isTime(value: number | null): boolean {
  return Number.isSafeInteger(value) && Math.abs((value ?? 0) - realEnv.wallMs()) < 86_400_000;
}
