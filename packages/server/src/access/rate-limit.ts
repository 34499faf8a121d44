/**
 * Commands per second for each API key: a bucket that fills at the rate and holds two seconds' worth. A
 * batch is let in when the bucket is not empty and may leave it in debt, so that a batch larger than the
 * bucket is slowed down, not made impossible.
 */
import type { Env } from "solehold/internal";
import { ProblemError, tooMany } from "../protocol/problem.ts";

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

const BURST_SECONDS = 2;

export class RateLimiter {
  readonly #env: Env;
  readonly #perSecond: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(env: Env, perSecond: number) {
    this.#env = env;
    this.#perSecond = perSecond;
  }

  /** Throws a ProblemError with status 429. `nowMs`: when they arrived, on the server's monotonic clock. */
  take(principalId: string, commands: number, nowMs = this.#env.monotonicMs()): void {
    const capacity = this.#perSecond * BURST_SECONDS;
    let bucket = this.#buckets.get(principalId);
    if (bucket === undefined) {
      bucket = { tokens: capacity, filledAtMs: nowMs };
      this.#buckets.set(principalId, bucket);
    } else if (nowMs > bucket.filledAtMs) {
      const gained = ((nowMs - bucket.filledAtMs) / 1_000) * this.#perSecond;
      bucket.tokens = Math.min(capacity, bucket.tokens + gained);
      bucket.filledAtMs = nowMs;
    }
    if (bucket.tokens < 1) {
      const waitMs = ((1 - bucket.tokens) / this.#perSecond) * 1_000;
      throw new ProblemError(tooMany(`this API key may send ${this.#perSecond} commands per second`, waitMs));
    }
    bucket.tokens -= commands;
  }
}
