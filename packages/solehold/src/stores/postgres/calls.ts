/** Calls that are not waited for longer than a deadline, and calls that are made again when they lost a race. */
import { delay, type Env, jittered, type Timer } from "../../env/index.ts";
import { isRetryable } from "./failures.ts";

const ATTEMPTS = 6;
const FIRST_DELAY_MS = 4;

/** One timer for all calls of the same patience: to set and cancel one for each would cost more than the rest. */
export class Deadlines<Call extends object> {
  readonly #env: Env;
  readonly #patienceMs: number;
  readonly #expire: (call: Call) => void;
  /** In order of their deadlines, because all have the same patience. */
  readonly #dueMs = new Map<Call, number>();
  #timer: Timer | null = null;

  constructor(env: Env, patienceMs: number, expire: (call: Call) => void) {
    this.#env = env;
    this.#patienceMs = patienceMs;
    this.#expire = expire;
  }

  add(call: Call): void {
    this.#dueMs.set(call, this.#env.monotonicMs() + this.#patienceMs);
    this.#timer ??= this.#env.timer(this.#patienceMs, () => this.#look());
  }

  has(call: Call): boolean {
    return this.#dueMs.has(call);
  }

  /** False when it had expired. */
  remove(call: Call): boolean {
    return this.#dueMs.delete(call);
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #look(): void {
    const nowMs = this.#env.monotonicMs();
    this.#timer = null;
    for (const [call, dueMs] of this.#dueMs) {
      if (dueMs > nowMs) {
        this.#timer = this.#env.timer(dueMs - nowMs, () => this.#look());
        return;
      }
      this.#dueMs.delete(call);
      this.#expire(call);
    }
  }
}

export interface Deadline<Result> {
  readonly env: Env;
  readonly timeoutMs: number;
  /** What the caller gets instead of an answer. */
  expired(): Error;
  /** What becomes of an answer that came too late. */
  late?(result: Result): void;
}

/** The same for a single call, which goes on behind the caller's back; its end is not lost. */
export function withDeadline<Result>(
  call: PromiseLike<Result>,
  { env, timeoutMs, expired, late }: Deadline<Result>,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let ended = false;
    const timer = env.timer(timeoutMs, () => {
      ended = true;
      reject(expired());
    });
    call.then(
      (result) => {
        if (ended) return late?.(result);
        timer.cancel();
        resolve(result);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}

/** How long to wait before a statement that lost to another one is sent again; null when it is not. */
export function retryDelayMs(env: Env, error: unknown, attempt: number): number | null {
  if (!isRetryable(error) || attempt >= ATTEMPTS) return null;
  return jittered(env, FIRST_DELAY_MS * 2 ** attempt, 0.5);
}

export async function withRetries<Result>(env: Env, run: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      const delayMs = retryDelayMs(env, error, attempt);
      if (delayMs === null) throw error;
      await delay(env, delayMs);
    }
  }
}
