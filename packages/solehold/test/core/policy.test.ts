/** A policy is complete, checked and frozen, or there is none. */
import { describe, expect, it } from "vitest";
import {
  createPolicy,
  DEFAULT_POLICY,
  decide,
  exactly,
  type LeasePolicy,
  MAX_DURATION_MS,
  MAX_U64,
  WRITER_POLICY,
} from "../../src/core/index.ts";

describe("createPolicy", () => {
  it("fills in the defaults and freezes the result", () => {
    const policy = createPolicy({ graceMs: 5 });
    expect(policy).toEqual({ ...DEFAULT_POLICY, graceMs: 5 });
    expect(Object.isFrozen(policy)).toBe(true);
    expect(Object.isFrozen(DEFAULT_POLICY) && Object.isFrozen(WRITER_POLICY)).toBe(true);
  });

  it("accepts both policies that it ships", () => {
    expect(createPolicy(DEFAULT_POLICY)).toEqual(DEFAULT_POLICY);
    expect(createPolicy(WRITER_POLICY)).toEqual(WRITER_POLICY);
  });

  it("keeps to the safe choice by default", () => {
    expect(DEFAULT_POLICY).toMatchObject({
      reacquire: "deny",
      renewExpired: "deny",
      release: "tombstone",
      revoked: "claim-at-expiry",
      proof: "token",
    });
  });

  const durations = ["minTtlMs", "maxTtlMs", "defaultTtlMs", "graceMs"] as const;

  it.each(durations)("refuses a %s that is no duration, and names it with the value", (field) => {
    for (const value of [
      -1,
      0.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      MAX_DURATION_MS + 1,
      "5" as unknown as number,
    ]) {
      expect(() => createPolicy({ [field]: value })).toThrow(
        new RegExp(`^policy\\.${field} must be a whole number of ms .*got ${String(value)}$`),
      );
    }
  });

  it("refuses a shortest ttl of zero; no grace is fine", () => {
    expect(() => createPolicy({ minTtlMs: 0 })).toThrow(/policy.minTtlMs/);
    expect(createPolicy({ graceMs: 0 }).graceMs).toBe(0);
  });

  it("refuses bounds that contradict each other", () => {
    expect(() => createPolicy({ minTtlMs: 2_000, maxTtlMs: 1_000, defaultTtlMs: 2_000 })).toThrow(
      /policy.maxTtlMs must be a whole number of ms from 2000/,
    );
    expect(() => createPolicy({ minTtlMs: 60_000 })).toThrow(/policy.defaultTtlMs .* from 60000/);
    expect(() => createPolicy({ maxTtlMs: 10_000 })).toThrow(
      /policy.defaultTtlMs must not exceed policy.maxTtlMs, got 30000 > 10000/,
    );
    const tight: Partial<LeasePolicy> = { minTtlMs: 5, maxTtlMs: 5, defaultTtlMs: 5 };
    expect(createPolicy(tight)).toMatchObject(tight);
  });

  it.each(["reacquire", "renewExpired", "release", "revoked", "proof", "generations"])(
    "refuses an unknown %s and lists the known ones",
    (field) => {
      for (const value of ["", "DENY", null, true]) {
        expect(() => createPolicy({ [field]: value })).toThrow(
          new RegExp(`^policy\\.${field} must be one of [a-z-]+, [a-z-]+, got ${String(value)}$`),
        );
      }
    },
  );

  it.each([-1n, MAX_U64 + 1n, 1 as unknown as bigint])("refuses a base term of %s", (baseTerm) => {
    expect(() => createPolicy({ baseTerm })).toThrow(/policy.baseTerm must be a bigint from 0 to 2\^64-1/);
  });

  it("accepts the largest base term", () => {
    expect(createPolicy({ baseTerm: MAX_U64 }).baseTerm).toBe(MAX_U64);
  });
});

describe("terms", () => {
  const acquire = (term?: bigint) => ({
    op: "acquire" as const,
    key: { tenant: "default", name: "job" },
    holder: "h",
    purpose: "Operation" as const,
    ttlMs: 1_000,
    tokenHash: "t".repeat(43),
    nonce: "n",
    ...(term === undefined ? {} : { term }),
  });

  it("are refused by name where callers must not be able to close a key for good", () => {
    const policy = createPolicy({ terms: "refuse" });
    const snapshot = { record: null, floor: 0n };
    expect(decide(acquire(7n), snapshot, exactly(1_000), policy).decision).toMatchObject({
      kind: "refused",
      field: "term",
    });
    for (const term of [undefined, 1n]) {
      expect(decide(acquire(term), snapshot, exactly(1_000), policy).decision.kind).toBe("granted");
    }
  });
});
