/**
 * Commands per second for each API key: a bucket that fills at the rate and holds two seconds' worth. A
 * batch is let in when the bucket is not empty and may leave it in debt, so that a batch larger than the
 * bucket is slowed down, not made impossible.
 */
import type { Env } from "solehold";
import { ProblemError, tooMany } from "../problem.ts";

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

  /** Throws a ProblemError with status 429. */
  take(principalId: string, commands: number): void {
    const nowMs = this.#env.monotonicMs();
    const capacity = this.#perSecond * BURST_SECONDS;
    const bucket = this.#buckets.get(principalId) ?? { tokens: capacity, filledAtMs: nowMs };
    const gained = ((nowMs - bucket.filledAtMs) / 1_000) * this.#perSecond;
    bucket.tokens = Math.min(capacity, bucket.tokens + gained);
    bucket.filledAtMs = nowMs;
    this.#buckets.set(principalId, bucket);
    if (bucket.tokens < 1) {
      const waitMs = ((1 - bucket.tokens) / this.#perSecond) * 1_000;
      throw new ProblemError(tooMany(`this API key may send ${this.#perSecond} commands per second`, waitMs));
    }
    bucket.tokens -= commands;
  }
}
