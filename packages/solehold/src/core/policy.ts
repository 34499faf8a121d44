/**
 * Policy: the points on which lease systems disagree, as data. One decision function reads it; there is
 * no second code path for another taste.
 */
import { BASE_TERM, MAX_U64 } from "./fence.ts";

export interface LeasePolicy {
  readonly minTtlMs: number;
  readonly maxTtlMs: number;
  readonly defaultTtlMs: number;
  /** The last part of a lease, in which it is reported as "grace". */
  readonly graceMs: number;
  /** A live lease asked for again under the same holder name: refused, or replaced by a new grant. */
  readonly reacquire: "deny" | "supersede";
  /** Renewing an expired lease that nobody took: refused, or allowed with the fence unchanged. */
  readonly renewExpired: "deny" | "if-unclaimed";
  /** What release leaves: a tombstone keeps fences growing; "delete" lets them restart at 1. */
  readonly release: "tombstone" | "delete";
  /**
   * A renewal, a refresh or a re-acquire that asks for less than was promised before. "keep-longest": the longer promise
   * stands, so no holder ever believes beyond the record. "set": the lease ends at now + ttl. That is safe only for a
   * holder that stops to believe the longer promise before it sends the shorter request, because the reply may be lost.
   */
  readonly shorten: "keep-longest" | "set";
  /** After a revoke another may claim the key once its old holder can no longer believe, or at once. */
  readonly revoked: "claim-at-expiry" | "claim-at-once";
  /** How renew, release, use and handoff prove ownership: by token, or by holder name and generation. */
  readonly proof: "token" | "generation";
  /**
   * What makes a new fence larger than every one before. "clock": the generation is the store's time in microseconds,
   * or the last one plus 1 if that is more; it keeps growing when records were collected, lost or restored from a
   * backup. "count": the last one plus 1, beginning with 1; records are then kept for ever, and a store that lost one
   * starts again at 1. A store without a clock counts.
   */
  readonly generations: "clock" | "count";
  /**
   * For how long a key stays closed after its lease expired, for an acquire that does not say: what the last holder had
   * under way may still arrive. Not after a release.
   */
  readonly lockDelayMs: number;
  /** The term of a command that names none. */
  readonly baseTerm: bigint;
  /**
   * Whether commands may name a term. A key that was ever held under a high term is closed to lower ones for
   * good, so where callers do not trust each other only the base term should be accepted.
   */
  readonly terms: "accept" | "refuse";
}

/** An hour covers every lease that is renewed; longer ones only delay recovery. */
export const DEFAULT_POLICY: LeasePolicy = Object.freeze({
  minTtlMs: 1,
  maxTtlMs: 3_600_000,
  defaultTtlMs: 30_000,
  graceMs: 0,
  reacquire: "deny",
  renewExpired: "deny",
  release: "tombstone",
  shorten: "keep-longest",
  revoked: "claim-at-expiry",
  proof: "token",
  generations: "clock",
  lockDelayMs: 0,
  baseTerm: BASE_TERM,
  terms: "accept",
});

/** No duration or instant may leave the integers that a double holds exactly. */
export const MAX_DURATION_MS = 365 * 24 * 3_600_000;

function wholeMs(name: string, value: number, min: number): void {
  if (!Number.isSafeInteger(value) || value < min || value > MAX_DURATION_MS) {
    throw new RangeError(
      `policy.${name} must be a whole number of ms from ${min} to ${MAX_DURATION_MS}, got ${value}`,
    );
  }
}

const CHOICES = {
  reacquire: ["deny", "supersede"],
  renewExpired: ["deny", "if-unclaimed"],
  release: ["tombstone", "delete"],
  shorten: ["keep-longest", "set"],
  revoked: ["claim-at-expiry", "claim-at-once"],
  proof: ["token", "generation"],
  generations: ["clock", "count"],
  terms: ["accept", "refuse"],
} as const satisfies { readonly [name in keyof LeasePolicy]?: readonly LeasePolicy[name][] };

/** A complete, checked, frozen policy. Throws on a value or a relation that could never work. */
export function createPolicy(overrides: Partial<LeasePolicy> = {}): LeasePolicy {
  for (const name of Object.keys(overrides)) {
    if (!(name in DEFAULT_POLICY))
      throw new RangeError(
        `policy has no field '${name}': it knows ${Object.keys(DEFAULT_POLICY).join(", ")}`,
      );
  }
  const policy: LeasePolicy = { ...DEFAULT_POLICY, ...overrides };
  wholeMs("minTtlMs", policy.minTtlMs, 1);
  wholeMs("maxTtlMs", policy.maxTtlMs, policy.minTtlMs);
  wholeMs("defaultTtlMs", policy.defaultTtlMs, policy.minTtlMs);
  wholeMs("graceMs", policy.graceMs, 0);
  wholeMs("lockDelayMs", policy.lockDelayMs, 0);
  if (policy.defaultTtlMs > policy.maxTtlMs) {
    throw new RangeError(
      `policy.defaultTtlMs must not exceed policy.maxTtlMs, got ${policy.defaultTtlMs} > ${policy.maxTtlMs}`,
    );
  }
  for (const [name, allowed] of Object.entries(CHOICES)) {
    const value = policy[name as keyof typeof CHOICES];
    if (!allowed.some((choice) => choice === value))
      throw new RangeError(`policy.${name} must be one of ${allowed.join(", ")}, got ${String(value)}`);
  }
  if (typeof policy.baseTerm !== "bigint" || policy.baseTerm < 0n || policy.baseTerm > MAX_U64) {
    throw new RangeError(`policy.baseTerm must be a bigint from 0 to 2^64-1, got ${String(policy.baseTerm)}`);
  }
  return Object.freeze(policy);
}
