/** Bounds how long a caller waits for an answer, which may still come behind its back. */
import type { Env } from "../../env/index.ts";

/** As `promise` settles, or rejected with `expired()` when it has not settled after `patienceMs`. */
export function inTime<Value>(
  env: Env,
  promise: Promise<Value>,
  patienceMs: number,
  expired: () => Error,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = env.timer(patienceMs, () => reject(expired()), { keepAlive: "yes" });
    const settled = <Argument>(settle: (argument: Argument) => void) => {
      return (argument: Argument): void => {
        timer.cancel();
        settle(argument);
      };
    };
    promise.then(settled(resolve), settled(reject));
  });
}
