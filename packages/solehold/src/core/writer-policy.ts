/** The writer lease of databases on object storage: terms, holder and generation instead of tokens. */
import { DEFAULT_POLICY, type LeasePolicy, MAX_DURATION_MS } from "./policy.ts";

export const WRITER_POLICY: LeasePolicy = Object.freeze({
  ...DEFAULT_POLICY,
  // A writer's ttl has no bound but zero.
  maxTtlMs: MAX_DURATION_MS,
  reacquire: "supersede",
  renewExpired: "if-unclaimed",
  release: "delete",
  shorten: "set",
  proof: "generation",
  generations: "count",
});
