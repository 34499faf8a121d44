/** Waiting, on the environment's clock. */
import type { Env } from "solehold";

export function delay(env: Env, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    env.timer(delayMs, resolve, { keepAlive: true });
  });
}
