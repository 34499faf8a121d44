/**
 * Bounds how long a caller waits. One timer serves all calls, because most are answered long before: a
 * timer per call would cost more than the call's own bookkeeping.
 *
 * Who waits is kept in a list whose links are cut when it ends. A Set of few that come and go would make a new table
 * every few calls, each reachable from the one before: one that got old keeps all later ones, with everything that
 * their calls sent, until the next full collection.
 */
import type { Env, Timer } from "../../env/index.ts";

interface Waiting {
  readonly deadlineMs: number;
  readonly expire: () => void;
  before: Waiting | null;
  after: Waiting | null;
}

export class Deadlines {
  readonly #env: Env;
  readonly #timeoutMs: number;
  /** In order of deadline, since all have the same patience. */
  #first: Waiting | null = null;
  #last: Waiting | null = null;
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
        before: this.#last,
        after: null,
      };
      if (this.#last === null) this.#first = waiting;
      else this.#last.after = waiting;
      this.#last = waiting;
      this.#timer ??= this.#arm(this.#timeoutMs);
      const succeed = (value: T): void => {
        this.#remove(waiting);
        resolve(value);
      };
      const fail = (error: unknown): void => {
        this.#remove(waiting);
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
    for (let waiting = this.#first; waiting !== null; waiting = this.#first) {
      if (waiting.deadlineMs > nowMs) {
        this.#timer = this.#arm(waiting.deadlineMs - nowMs);
        return;
      }
      this.#remove(waiting);
      waiting.expire();
    }
  }

  /** What has expired is settled later, too: it is removed once. */
  #remove(waiting: Waiting): void {
    const { before, after } = waiting;
    if (before === null && this.#first !== waiting) return;
    if (before === null) this.#first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    waiting.before = null;
    waiting.after = null;
  }
}
