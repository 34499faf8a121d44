/**
 * Where the seed documents ask for something else than Solehold's defaults, as policy: one entry a document. `decide` reads
 * it as it reads any policy. Each facade takes a `policy` of the caller's, which overrides these.
 */
import { type LeasePolicy, MAX_DURATION_MS } from "../core/index.ts";

/** Document 000: no bounds for a ttl, a renewal sets now + ttl, and generations that count from 1. */
export const LEASE_SERVICE_POLICY: Partial<LeasePolicy> = Object.freeze({
  maxTtlMs: MAX_DURATION_MS,
  shorten: "set",
  generations: "count",
});

/** Document 001: 1 s to 5 min, 30 s when nothing is said; a renewal sets now + ttl; the fencing counter begins at 1. */
export const LEASE_MANAGER_POLICY: Partial<LeasePolicy> = Object.freeze({
  minTtlMs: 1_000,
  maxTtlMs: 300_000,
  defaultTtlMs: 30_000,
  shorten: "set",
  generations: "count",
});

/** Document 002: up to 5 min, a renewal sets now + ttl, and an owner that asks again gets a new token. */
export const DECISION_GATE_POLICY: Partial<LeasePolicy> = Object.freeze({
  maxTtlMs: 300_000,
  shorten: "set",
  reacquire: "supersede",
  generations: "count",
});
