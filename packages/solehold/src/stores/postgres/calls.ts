/** Calls that are not waited for longer than a deadline, and calls that are made again when they lost a race. */
import { delay, type Env, jittered } from "../../env/index.ts";
import { isRetryable } from "./failures.ts";

const ATTEMPTS = 6;
const FIRST_DELAY_MS = 4;

export interface Deadline<Result> {
  readonly env: Env;
  readonly timeoutMs: number;
  /** What the caller gets instead of an answer. */
  expired(): Error;
  /** What becomes of an answer that came too late. */
  late?(result: Result): void;
}

/** The call goes on behind the caller's back; its end is not lost. */
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

/** A statement that lost to another one was rolled back: it is sent again, a few times, at random distances. */
export async function withRetries<Result>(env: Env, run: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (!isRetryable(error) || attempt === ATTEMPTS) throw error;
      await delay(env, jittered(env, FIRST_DELAY_MS * 2 ** attempt, 0.5));
    }
  }
}
