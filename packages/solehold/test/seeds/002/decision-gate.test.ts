/** Document 002, the decision gate, in its own words: evaluatePolicy -> computeDecision over three fields of snapshot. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { REASONS, type Reason } from "../../../src/core/index.ts";
import {
  type ActiveLeaseSnapshot,
  computeDecision,
  decideLease,
  evaluatePolicy,
  LEASE_DECISION_COMPUTE,
  LEASE_POLICY_EVALUATE,
  type LeaseGateRequest,
} from "../../../src/facades/seeds.ts";

const NOW = 10_000;

function request(
  operation: LeaseGateRequest["operation"],
  changes: Partial<Record<keyof LeaseGateRequest, unknown>> = {},
): LeaseGateRequest {
  return {
    tenantId: "acme",
    workOrderId: "wo-1",
    leaseOwnerId: "worker-1",
    operation,
    requestedTtlMs: 5_000,
    now: NOW,
    ...(operation === "ACQUIRE" ? { proposedToken: "new-token" } : { leaseToken: "token" }),
    ...changes,
  } as LeaseGateRequest;
}

function held(changes: Partial<ActiveLeaseSnapshot> = {}): ActiveLeaseSnapshot {
  return {
    activeLeaseOwnerId: "worker-1",
    activeLeaseToken: "token",
    activeLeaseExpiresAt: NOW + 1_000,
    ...changes,
  };
}

const OTHER = held({ activeLeaseOwnerId: "worker-2", activeLeaseToken: "theirs" });

function run(given: LeaseGateRequest, snapshot: ActiveLeaseSnapshot | null) {
  return computeDecision(given, snapshot, evaluatePolicy(given, snapshot));
}

function fields(value: object): Record<string, unknown> {
  return JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
}

describe("002: LEASE_POLICY_EVALUATE -> LEASE_DECISION_COMPUTE", () => {
  it("are the two steps by the document's names, and give a lease_policy_bundle and a lease_decision_bundle", () => {
    const bundle = LEASE_POLICY_EVALUATE(request("ACQUIRE"), null);
    expect(fields(bundle)).toEqual({
      lease_exists: false,
      lease_expired: false,
      owner_match: false,
      token_match: false,
      ttl_in_bounds: true,
      grant_eligible: true,
      reason: "OK_POLICY_EVALUATE",
      reason_code: 0x4c530001,
    });
    expect(fields(LEASE_DECISION_COMPUTE(request("ACQUIRE"), null, bundle))).toEqual({
      decision: "LeaseGranted",
      lease_token: "new-token",
      lease_expires_at: NOW + 5_000,
      resume_from_ledger_required: false,
      reason: "OK_DECISION_COMPUTE",
      reason_code: 0x4c530002,
      idempotency_key: null,
    });
  });

  it.each([
    ["lease_exists, even if expired", held({ activeLeaseExpiresAt: 1 }), "leaseExists", null, "leaseExists"],
    [
      "lease_expired at exactly its expiry",
      held({ activeLeaseExpiresAt: NOW }),
      "leaseExpired",
      held(),
      "leaseExpired",
    ],
    ["owner_match", held(), "ownerMatch", OTHER, "ownerMatch"],
    ["token_match", held(), "tokenMatch", held({ activeLeaseToken: "x" }), "tokenMatch"],
    ["grant_eligible", held(), "grantEligible", OTHER, "grantEligible"],
  ] as const)("the bundle says %s", (_name, yes, yesField, no, noField) => {
    expect(evaluatePolicy(request("RENEW"), yes)[yesField]).toBe(true);
    expect(evaluatePolicy(request("RENEW"), no)[noField]).toBe(false);
  });

  it("ttl_in_bounds: 1 to 300000 ms, and outside it is refused with LEASE_TTL_OUT_OF_BOUNDS", () => {
    for (const requestedTtlMs of [1, 300_000])
      expect(evaluatePolicy(request("ACQUIRE", { requestedTtlMs }), null).ttlInBounds).toBe(true);
    const given = request("ACQUIRE", { requestedTtlMs: 300_001 });
    expect(evaluatePolicy(given, null).ttlInBounds).toBe(false);
    expect(run(given, null)).toMatchObject({
      decision: "Refused",
      reason: "LEASE_TTL_OUT_OF_BOUNDS",
      field: "requestedTtlMs",
    });
    expect(run(request("ACQUIRE", { requestedTtlMs: 0 }), null)).toMatchObject({
      reason: "INPUT_SCHEMA_INVALID",
      field: "requestedTtlMs",
    });
  });

  it.each([
    ["ACQUIRE, none: granted", "ACQUIRE", null, "LeaseGranted", "OK_DECISION_COMPUTE"],
    ["ACQUIRE, live, other: denied", "ACQUIRE", OTHER, "LeaseDenied", "LEASE_HELD_BY_OTHER"],
    [
      "ACQUIRE, live, self: granted with the new token",
      "ACQUIRE",
      held(),
      "LeaseGranted",
      "OK_DECISION_COMPUTE",
    ],
    ["RENEW, none: not found", "RENEW", null, "LeaseDenied", "LEASE_NOT_FOUND"],
    ["RELEASE, none: not found", "RELEASE", null, "LeaseDenied", "LEASE_NOT_FOUND"],
    ["RENEW, live, other: denied", "RENEW", OTHER, "LeaseDenied", "LEASE_HELD_BY_OTHER"],
    ["RELEASE, live, other: denied", "RELEASE", OTHER, "LeaseDenied", "LEASE_HELD_BY_OTHER"],
    [
      "RENEW, live, self, wrong token: denied",
      "RENEW",
      held({ activeLeaseToken: "x" }),
      "LeaseDenied",
      "LEASE_TOKEN_INVALID",
    ],
    [
      "RELEASE, live, self, wrong token: denied",
      "RELEASE",
      held({ activeLeaseToken: "x" }),
      "LeaseDenied",
      "LEASE_TOKEN_INVALID",
    ],
    [
      "RENEW, expired, self, right token: expired",
      "RENEW",
      held({ activeLeaseExpiresAt: NOW }),
      "LeaseDenied",
      "LEASE_EXPIRED",
    ],
    [
      "RENEW, expired, other: denied",
      "RENEW",
      { ...OTHER, activeLeaseExpiresAt: NOW },
      "LeaseDenied",
      "LEASE_HELD_BY_OTHER",
    ],
    [
      "RELEASE, expired, other: denied",
      "RELEASE",
      { ...OTHER, activeLeaseExpiresAt: NOW },
      "LeaseDenied",
      "LEASE_HELD_BY_OTHER",
    ],
  ] as const)("the table: %s", (_name, operation, snapshot, decision, reason) => {
    expect(run(request(operation), snapshot)).toMatchObject({ decision, reason });
  });

  it("an expired lease is taken over from the snapshot, and resume_from_ledger_required says so", () => {
    for (const owner of ["worker-1", "worker-2"]) {
      const snapshot = held({ activeLeaseOwnerId: owner, activeLeaseExpiresAt: NOW });
      expect(run(request("ACQUIRE"), snapshot)).toMatchObject({
        decision: "LeaseGranted",
        resumeFromLedgerRequired: true,
        leaseToken: "new-token",
      });
    }
    expect(run(request("ACQUIRE"), null)).toMatchObject({ resumeFromLedgerRequired: false });
  });

  it("a renewal keeps the token and sets now + ttl, also when that is earlier than before", () => {
    const snapshot = held({ activeLeaseExpiresAt: NOW + 100_000 });
    expect(run(request("RENEW"), snapshot)).toMatchObject({
      decision: "LeaseGranted",
      leaseToken: "token",
      leaseExpiresAt: NOW + 5_000,
    });
  });

  it("a release leaves an inactive state: token and expiry cleared", () => {
    expect(run(request("RELEASE"), held())).toMatchObject({
      decision: "LeaseGranted",
      leaseToken: null,
      leaseExpiresAt: null,
    });
  });

  it("a denial has the holder where another has it and never a token; a grant never has a holder", () => {
    const denied = fields(run(request("ACQUIRE"), OTHER));
    expect(denied).toMatchObject({ held_by: "worker-2", held_until: NOW + 1_000 });
    expect(denied).not.toHaveProperty("lease_token");
    expect(JSON.stringify(denied)).not.toContain("theirs");
    expect(fields(run(request("RENEW"), null))).toMatchObject({ held_by: null, held_until: null });
    expect(fields(run(request("ACQUIRE"), null))).not.toHaveProperty("held_by");
  });

  it.each(["activeLeaseOwnerId", "activeLeaseToken", "activeLeaseExpiresAt"] as const)(
    "snapshot coherence: without %s it is refused, never decided on",
    (name) => {
      const { [name]: _left, ...rest } = held();
      const incoherent = rest as ActiveLeaseSnapshot;
      for (const operation of ["ACQUIRE", "RENEW", "RELEASE"] as const) {
        expect(evaluatePolicy(request(operation), incoherent).grantEligible).toBe(false);
        expect(run(request(operation), incoherent)).toMatchObject({
          decision: "Refused",
          reason: "INPUT_SCHEMA_INVALID",
          field: "snapshot",
        });
      }
    },
  );

  it("AT-LEASE-03: RENEW and RELEASE without a token are refused, which is not a denial", () => {
    for (const operation of ["RENEW", "RELEASE"] as const) {
      expect(run(request(operation, { leaseToken: undefined }), held())).toMatchObject({
        decision: "Refused",
        reason: "INPUT_SCHEMA_INVALID",
        field: "leaseToken",
      });
    }
  });

  it.each([
    ["tenantId", "x".repeat(64), "x".repeat(65)],
    ["workOrderId", "x".repeat(128), "x".repeat(129)],
    ["leaseOwnerId", "x".repeat(128), "x".repeat(129)],
    ["proposedToken", "aZ0_-:./", "not a token"],
    ["proposedToken", "x".repeat(192), "x".repeat(193)],
    ["idempotencyKey", "x".repeat(128), "x".repeat(129)],
    ["operation", "ACQUIRE", "acquire"],
    ["now", 0, -1],
  ] as const)("%s has its bounds, and outside the field is named", (field, good, bad) => {
    expect(run(request("ACQUIRE", { [field]: good }), null)).toMatchObject({ decision: "LeaseGranted" });
    expect(run(request("ACQUIRE", { [field]: bad }), null)).toMatchObject({
      decision: "Refused",
      reason: "INPUT_SCHEMA_INVALID",
      field,
    });
  });

  it("UPSTREAM_INPUT_MISSING: no snapshot at all, no request, or no token to grant", () => {
    const missing = { decision: "Refused", reason: "UPSTREAM_INPUT_MISSING", reasonCode: 0x4c5300f2 };
    expect(run(request("ACQUIRE"), undefined as never)).toMatchObject({ ...missing, field: "snapshot" });
    expect(run(undefined as never, null)).toMatchObject({ ...missing, field: "request" });
    expect(run(request("ACQUIRE", { proposedToken: undefined }), null)).toMatchObject({
      ...missing,
      field: "proposedToken",
    });
  });

  it("INTERNAL_PIPELINE_ERROR: a bundle of other inputs is refused", () => {
    const foreign = evaluatePolicy(request("ACQUIRE"), null);
    expect(computeDecision(request("ACQUIRE"), OTHER, foreign)).toMatchObject({
      decision: "Refused",
      reason: "INTERNAL_PIPELINE_ERROR",
    });
  });

  it.each([
    ["OK_POLICY_EVALUATE", 0x4c530001],
    ["OK_DECISION_COMPUTE", 0x4c530002],
    ["LEASE_HELD_BY_OTHER", 0x4c530010],
    ["LEASE_TOKEN_INVALID", 0x4c530011],
    ["LEASE_TTL_OUT_OF_BOUNDS", 0x4c530012],
    ["LEASE_NOT_FOUND", 0x4c530013],
    ["INPUT_SCHEMA_INVALID", 0x4c5300f1],
    ["UPSTREAM_INPUT_MISSING", 0x4c5300f2],
    ["BUDGET_EXCEEDED", 0x4c5300f3],
    ["INTERNAL_PIPELINE_ERROR", 0x4c5300f4],
  ] as const)("reason code %s has the document's number", (reason: Reason, code) => {
    expect(REASONS[reason].code).toBe(code);
  });

  it("the idempotency key is handed on unchanged, in grants, denials and refusals", () => {
    const key = { idempotencyKey: "key-1" };
    for (const [given, snapshot] of [
      [request("ACQUIRE", key), null],
      [request("ACQUIRE", key), OTHER],
      [request("RENEW", { ...key, leaseToken: undefined }), null],
    ] as const)
      expect(run(given, snapshot).idempotencyKey).toBe("key-1");
  });

  it("decideLease draws 128 random bits where no token is proposed", () => {
    const given = request("ACQUIRE", { proposedToken: undefined });
    const tokens = [1, 2].map(() => {
      const decided = decideLease(given, null);
      return decided.decision === "LeaseGranted" ? decided.leaseToken : null;
    });
    expect(tokens[0]).toMatch(/^[\w-]{22}$/);
    expect(tokens[0]).not.toBe(tokens[1]);
  });

  it("gives exactly one reasoned decision for any input, the same bytes each time, and changes nothing it was given", () => {
    const anything = fc.anything({ maxDepth: 2 });
    const mixed = fc.oneof(
      anything,
      fc.record({
        tenantId: fc.oneof(fc.constant("acme"), anything),
        workOrderId: fc.oneof(fc.constant("wo"), anything),
        leaseOwnerId: fc.oneof(fc.constant("a"), fc.constant("b"), anything),
        operation: fc.oneof(fc.constantFrom("ACQUIRE", "RENEW", "RELEASE"), anything),
        requestedTtlMs: fc.oneof(fc.integer({ min: -1, max: 400_000 }), anything),
        now: fc.oneof(fc.integer({ min: 0, max: 20_000 }), anything),
        leaseToken: fc.oneof(fc.constant("token"), fc.constant(undefined), anything),
        proposedToken: fc.oneof(fc.constant("new"), fc.constant(undefined), anything),
      }),
    );
    const snapshots = fc.oneof(
      fc.constant(null),
      anything,
      fc.record({
        activeLeaseOwnerId: fc.constantFrom("a", "b"),
        activeLeaseToken: fc.constant("token"),
        activeLeaseExpiresAt: fc.integer({ min: 0, max: 20_000 }),
      }),
    );
    fc.assert(
      fc.property(mixed, snapshots, (given, snapshot) => {
        Object.freeze(given);
        Object.freeze(snapshot);
        const once = run(given as LeaseGateRequest, snapshot as ActiveLeaseSnapshot | null);
        const again = run(given as LeaseGateRequest, snapshot as ActiveLeaseSnapshot | null);
        expect(["LeaseGranted", "LeaseDenied", "Refused"]).toContain(once.decision);
        expect(once.reasonCode).toBe(REASONS[once.reason].code);
        expect(JSON.stringify(again)).toBe(JSON.stringify(once));
      }),
      { numRuns: 500 },
    );
  });
});
