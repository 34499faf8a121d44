import type { Env } from "../env/index.ts";

/**
 * As `promise` settles, or rejected with `onExpiry()` when that takes longer than `timeoutMs`. A result that comes
 * too late is dropped, and handed to `onLate` if somebody has to dispose of it.
 */
export function withDeadline<Value>(
  env: Env,
  timeoutMs: number,
  promise: Promise<Value>,
  onExpiry: () => Error,
  onLate?: (value: Value) => void,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    let expired = false;
    const timer = env.timer(
      timeoutMs,
      () => {
        expired = true;
        reject(onExpiry());
      },
      { keepAlive: true },
    );
    promise.then(
      (value) => {
        timer.cancel();
        if (expired) onLate?.(value);
        else resolve(value);
      },
      (error) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}

/** As `withDeadline`, for work that can be given up: its signal aborts when the time is over. */
export function withAbort<Value>(
  env: Env,
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<Value>,
  onExpiry: () => Error,
): Promise<Value> {
  const abort = new AbortController();
  // In a function of its own, so that work that throws at once is work that rejects.
  const promise = (async () => work(abort.signal))();
  return withDeadline(env, timeoutMs, promise, () => {
    abort.abort();
    return onExpiry();
  });
}
