/** A pause on the env's clock. */
import type { Env } from "solehold";

export function delay(env: Env, delayMs: number): Promise<void> {
  return new Promise((resolve) => void env.timer(delayMs, resolve, { keepAlive: true }));
}
