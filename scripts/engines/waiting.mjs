// Waiting for a condition of the outside world that nothing announces: a port that answers, a process that ends.
import { setTimeout as sleep } from "node:timers/promises";

/**
 * @template T
 * @param {string} what What is awaited, for the error.
 * @param {number} timeoutMs
 * @param {() => T | Promise<T>} probe A truthy value ends the wait; a throw means "not yet".
 * @param {() => string | undefined} [hopeless] Says why waiting any longer is in vain.
 * @returns {Promise<NonNullable<Awaited<T>>>}
 */
export async function waitFor(what, timeoutMs, probe, hopeless = () => undefined) {
  const deadline = performance.now() + timeoutMs;
  let lastError = "";
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 1.5, 100)) {
    try {
      const value = await probe();
      if (value) return value;
    } catch (error) {
      lastError = error instanceof Error ? error.message : String(error);
    }
    const reason = hopeless();
    if (reason !== undefined) throw new Error(`${what}: ${reason}`);
    if (performance.now() > deadline) {
      throw new Error(`${what}: nothing after ${timeoutMs / 1000} s${lastError && ` (last: ${lastError})`}`);
    }
    await sleep(pauseMs);
  }
}
