/**
 * Bounds how long a caller waits. One timer serves all calls, because most are answered long before: a
 * timer per call would cost more than the call's own bookkeeping.
 */
import type { Env, Timer } from "../../env/index.ts";

interface Waiting {
  readonly deadlineMs: number;
  readonly expire: () => void;
}

export class Deadlines {
  readonly #env: Env;
  readonly #timeoutMs: number;
  /** In order of deadline, since all have the same patience. */
  readonly #waiting = new Set<Waiting>();
  #timer: Timer | null = null;

  constructor(env: Env, timeoutMs: number) {
    this.#env = env;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * As `promise` settles, or rejected with `onExpiry()` when it has not settled in time. A failure may be
   * replaced by another promise, within the same time.
   */
  bound<T>(
    promise: Promise<T>,
    onExpiry: () => Error,
    onFailure?: (error: unknown) => Promise<T>,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        deadlineMs: this.#env.monotonicMs() + this.#timeoutMs,
        expire: () => reject(onExpiry()),
      };
      this.#waiting.add(waiting);
      this.#timer ??= this.#arm(this.#timeoutMs);
      const succeed = (value: T): void => {
        this.#waiting.delete(waiting);
        resolve(value);
      };
      const fail = (error: unknown): void => {
        this.#waiting.delete(waiting);
        reject(error);
      };
      promise.then(succeed, onFailure === undefined ? fail : (error) => onFailure(error).then(succeed, fail));
    });
  }

  /** Nothing expires after this; what waits is settled by the end of its connection. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #arm(delayMs: number): Timer {
    return this.#env.timer(delayMs, () => this.#expire(), { keepAlive: "yes" });
  }

  #expire(): void {
    this.#timer = null;
    const nowMs = this.#env.monotonicMs();
    for (const waiting of this.#waiting) {
      if (waiting.deadlineMs > nowMs) {
        this.#timer = this.#arm(waiting.deadlineMs - nowMs);
        return;
      }
      this.#waiting.delete(waiting);
      waiting.expire();
    }
  }
}
