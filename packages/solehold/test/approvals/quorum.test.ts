import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Approval,
  describeFailure,
  MAX_APPROVALS,
  MAX_FAILURES,
  type QuorumVerification,
  SAFETY_TIERS,
  verifyQuorum,
} from "../../src/approvals/index.ts";
import {
  approve,
  codesOf,
  defined,
  NOT_AFTER_MS,
  NOT_BEFORE_MS,
  NOW_MS,
  quorumOf,
  REQUEST,
  testKey,
  verify,
} from "./fixtures.ts";

const THREE = quorumOf(["s1", "s2", "s3"]);
const LENIENT = quorumOf(["s1", "s2", "s3"], { mode: "lenient" });
const ALL = ["s1", "s2", "s3"].map((signerId) => approve(signerId));
const GARBAGE = Buffer.alloc(64, 7).toString("base64url");

function inTier(tier: string, signers: readonly string[]) {
  const request = { ...REQUEST, tier };
  return { request, approvals: signers.map((signerId) => approve(signerId, request)) };
}

describe("the published quorum vectors", () => {
  const only = (...signerIds: string[]) =>
    quorumOf(signerIds, {
      thresholds: { standard: 1, risky: signerIds.length, dangerous: signerIds.length },
    });

  it.each([
    ["standard-1-of-1", "Standard", only("s1"), ["s1"]],
    ["risky-2-of-2", "Risky", only("s1", "s2"), ["s1", "s2"]],
    ["dangerous-3-of-3", "Dangerous", only("s1", "s2", "s3"), ["s1", "s2", "s3"]],
  ] as const)("%s passes", (_, tier, quorum, signers) => {
    const { request, approvals } = inTier(tier, signers);
    const count = signers.length;
    expect(verify(quorum, approvals, { request })).toMatchObject({
      tier,
      required: count,
      received: count,
      passed: true,
      failures: [],
    });
  });

  it("risky-1-of-2 is below quorum: required 2, received 1", () => {
    const { request, approvals } = inTier("Risky", ["s1"]);
    const result = verify(only("s1", "s2"), approvals, { request });
    expect(result.passed).toBe(false);
    expect(result.failures).toEqual([
      { kind: "BelowQuorum", code: "LC_BELOW_QUORUM", required: 2, received: 1 },
    ]);
  });

  it("unknown-signer fails, although one valid signature would be enough", () => {
    const { request, approvals } = inTier("Standard", ["s1", "rogue"]);
    const result = verify(only("s1"), approvals, { request });
    expect(result).toMatchObject({ passed: false, received: 1, required: 1 });
    expect(result.failures).toEqual([
      { kind: "UnknownSigner", code: "LC_UNKNOWN_SIGNER", signerId: "rogue" },
    ]);
  });

  it("invalid-signature is invalid and below quorum", () => {
    const { request, approvals } = inTier("Standard", ["s1"]);
    const result = verify(only("s1"), [{ ...approvals[0]!, signature: GARBAGE }], { request });
    expect(result.passed).toBe(false);
    expect(codesOf(result)).toEqual(["LC_INVALID_SIGNATURE", "LC_BELOW_QUORUM"]);
  });
});

describe("INV-LC-QUORUM-TIER", () => {
  it("INV-LC-QUORUM-TIER: Standard, Risky and Dangerous need 1, 2 and 3 signers by default", () => {
    const passing = SAFETY_TIERS.map((tier) =>
      [0, 1, 2, 3].filter((count) => {
        const { request, approvals } = inTier(tier, ["s1", "s2", "s3"].slice(0, count));
        return verify(THREE, approvals, { request }).passed;
      }),
    );
    expect(passing).toEqual([[1, 2, 3], [2, 3], [3]]);
  });

  it("INV-LC-QUORUM-TIER: with any valid thresholds a higher tier never needs fewer signers", () => {
    const thresholds = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 3, maxLength: 3 });
    fc.assert(
      fc.property(thresholds, (counts) => {
        const [standard, risky, dangerous] = [...counts].sort((a, b) => a - b) as [number, number, number];
        const quorum = quorumOf(["s1", "s2", "s3", "s4"], { thresholds: { standard, risky, dangerous } });
        const required = SAFETY_TIERS.map(
          (tier) => verify(quorum, [], { request: { ...REQUEST, tier } }).required,
        );
        expect(required).toEqual([Math.max(1, standard), Math.max(1, risky), Math.max(1, dangerous)]);
      }),
      { numRuns: 30 },
    );
  });

  it.each(["dangerous", "standard", "STANDARD", "Catastrophic", "toString", "Standard2"])(
    "INV-LC-QUORUM-TIER: the unknown tier %s is the most demanding one",
    (tier) => {
      const { request, approvals } = inTier(tier, ["s1", "s2"]);
      expect(verify(THREE, approvals, { request })).toMatchObject({
        tier: "Dangerous",
        required: 3,
        passed: false,
      });
      const enough = inTier(tier, ["s1", "s2", "s3"]);
      expect(verify(THREE, enough.approvals, enough)).toMatchObject({ tier: "Dangerous", passed: true });
    },
  );
});

describe("INV-LC-VERIFY-CLASSIFIED", () => {
  it("INV-LC-VERIFY-CLASSIFIED: each kind in its place, by signer within a kind, below quorum last", () => {
    const old = { notBeforeMs: NOT_BEFORE_MS - 9_000, notAfterMs: NOW_MS };
    const early = { notBeforeMs: NOW_MS + 1, notAfterMs: NOW_MS + 9_000 };
    const signers = ["a", "b", "c", "d", "e", "f"].map((signerId) => ({
      signerId,
      keys: [{ publicKey: testKey(signerId).publicKey }],
    }));
    const retired = { signerId: "g", keys: [{ publicKey: testKey("g").publicKey, notAfterMs: NOW_MS }] };
    const quorum = defined({ signers: [...signers, retired] });
    const used = verify(quorum, [approve("f")]).accepted.map(({ approvalId }) => approvalId);
    const approvals = [
      approve("g"),
      approve("f"),
      approve("e", REQUEST, old),
      approve("d", REQUEST, early),
      { ...approve("c"), signature: GARBAGE },
      approve("b", { ...REQUEST, ttlMs: 1 }),
      approve("zoe"),
      approve("adam"),
    ];
    const result = verify(quorum, approvals, { consumedIds: new Set(used) });
    expect(result.failures).toEqual([
      { kind: "UnknownSigner", code: "LC_UNKNOWN_SIGNER", signerId: "adam" },
      { kind: "UnknownSigner", code: "LC_UNKNOWN_SIGNER", signerId: "zoe" },
      { kind: "InvalidSignature", code: "LC_INVALID_SIGNATURE", signerId: "b", fault: "mismatch" },
      { kind: "InvalidSignature", code: "LC_INVALID_SIGNATURE", signerId: "c", fault: "mismatch" },
      { kind: "KeyNotValid", code: "LC_KEY_NOT_VALID", signerId: "g" },
      {
        kind: "ApprovalNotYetValid",
        code: "LC_APPROVAL_NOT_YET_VALID",
        signerId: "d",
        notBeforeMs: NOW_MS + 1,
      },
      { kind: "ApprovalExpired", code: "LC_APPROVAL_EXPIRED", signerId: "e", notAfterMs: NOW_MS },
      { kind: "ApprovalReplayed", code: "LC_APPROVAL_REPLAYED", signerId: "f" },
      { kind: "BelowQuorum", code: "LC_BELOW_QUORUM", required: 3, received: 0 },
    ]);
    expect(result.failures.map(describeFailure)).toContain(
      "the approval of e expired at 2027-01-15T08:00:00.000Z",
    );
    expect(result.failures.map(describeFailure).at(-1)).toBe("3 approvals are required, 0 count");
  });

  it("INV-LC-VERIFY-CLASSIFIED: 300 unknown signers give 256 failures, and below quorum is the last of them", () => {
    const strangers = Array.from({ length: 300 }, (_, index) => ({ ...ALL[0]!, signerId: `x${index}` }));
    const result = verify(THREE, strangers);
    expect(result.failures.length).toBe(MAX_FAILURES);
    expect(result.failuresOmitted).toBe(45);
    expect(result.failures.at(-1)).toMatchObject({ kind: "BelowQuorum", required: 3, received: 0 });
    expect(result.failures[0]).toMatchObject({ kind: "UnknownSigner", signerId: "x0" });
    const met = verify(THREE, [...strangers, ...ALL]);
    expect(met).toMatchObject({ passed: false, received: 3, failuresOmitted: 44 });
    expect(new Set(codesOf(met))).toEqual(new Set(["LC_UNKNOWN_SIGNER"]));
    expect(verify(LENIENT, [...strangers, ...ALL])).toMatchObject({
      passed: true,
      received: 3,
      failuresOmitted: 44,
    });
  });

  it("INV-LC-VERIFY-CLASSIFIED: a signer who is there twice counts once, and is no failure by itself", () => {
    const doubled = verify(THREE, [ALL[0]!, ALL[0]!, { ...ALL[0]! }]);
    expect(doubled.received).toBe(1);
    expect(doubled.failures).toEqual([
      { kind: "BelowQuorum", code: "LC_BELOW_QUORUM", required: 3, received: 1 },
    ]);
    const twoWindows = verify(THREE, [...ALL, approve("s1", REQUEST, { notAfterMs: NOT_AFTER_MS + 1 })]);
    expect(twoWindows).toMatchObject({ passed: true, received: 3 });
    expect(twoWindows.accepted.map(({ signerId }) => signerId)).toEqual(["s1", "s1", "s2", "s3"]);
  });

  it("INV-LC-VERIFY-CLASSIFIED: a flood from one signer is refused without checking it", () => {
    const flood = [1, 2, 3, 4].map((extra) => approve("s1", REQUEST, { notAfterMs: NOT_AFTER_MS + extra }));
    const result = verify(THREE, [...ALL, ...flood]);
    expect(result.received).toBe(2);
    expect(result.failures[0]).toMatchObject({ kind: "InvalidSignature", signerId: "s1", fault: "too-many" });
  });
});

describe("strict and lenient", () => {
  const extras: readonly (readonly [string, Approval])[] = [
    ["an unknown signer", approve("rogue")],
    ["a garbage signature of a signer who also signed", { ...ALL[0]!, signature: GARBAGE }],
    ["an expired approval", approve("s2", REQUEST, { notBeforeMs: 0, notAfterMs: 1 })],
  ];

  it.each(extras)("%s vetoes a strict quorum, and is only reported by a lenient one", (_, extra) => {
    const strict = verify(THREE, [...ALL, extra]);
    const lenient = verify(LENIENT, [...ALL, extra]);
    expect(strict).toMatchObject({ passed: false, received: 3 });
    expect(lenient).toMatchObject({ passed: true, received: 3 });
    expect(lenient.failures).toEqual(strict.failures);
    expect(strict.failures.length).toBe(1);
  });

  it("never pass below the threshold", () => {
    expect(verify(LENIENT, ALL.slice(0, 2))).toMatchObject({ passed: false, received: 2 });
  });
});

describe("windows", () => {
  it.each([
    [NOT_BEFORE_MS - 1, "LC_APPROVAL_NOT_YET_VALID"],
    [NOT_BEFORE_MS, "passed"],
    [NOT_AFTER_MS - 1, "passed"],
    [NOT_AFTER_MS, "LC_APPROVAL_EXPIRED"],
    [NOT_AFTER_MS + 1, "LC_APPROVAL_EXPIRED"],
  ])("are half-open: at %i the approvals are %s", (nowMs, expected) => {
    const result = verify(THREE, ALL, { nowMs });
    expect(result.passed ? "passed" : result.failures[0]?.code).toBe(expected);
  });

  it("let a signer change keys without a gap, and retire the old key at its end", () => {
    const rotation = {
      signerId: "s1",
      keys: [
        { publicKey: testKey("s1").publicKey, notAfterMs: NOW_MS },
        { publicKey: testKey("s1-new").publicKey, notBeforeMs: NOW_MS - 10 },
      ],
    };
    const quorum = defined({ signers: [rotation], thresholds: { standard: 1, risky: 1, dangerous: 1 } });
    const withOld = [approve("s1")];
    const withNew = [approve("s1", REQUEST, {}, "s1-new")];
    const codes = (approvals: readonly Approval[], nowMs: number) =>
      codesOf(verify(quorum, approvals, { nowMs }))[0] ?? "passed";
    expect(
      [NOW_MS - 11, NOW_MS - 10, NOW_MS - 1, NOW_MS].map((nowMs) => [
        codes(withOld, nowMs),
        codes(withNew, nowMs),
      ]),
    ).toEqual([
      ["passed", "LC_KEY_NOT_VALID"],
      ["passed", "passed"],
      ["passed", "passed"],
      ["LC_KEY_NOT_VALID", "passed"],
    ]);
    const removed = quorumOf(["s1-new"], { thresholds: { standard: 1, risky: 1, dangerous: 1 } });
    expect(codesOf(verify(removed, withOld))).toEqual(["LC_UNKNOWN_SIGNER", "LC_BELOW_QUORUM"]);
  });
});

describe("INV-LC-REPLAY", () => {
  it("INV-LC-REPLAY: the same approvals in any order, with repeats, give the same result", () => {
    const pool = [
      ...ALL,
      approve("rogue"),
      { ...ALL[1]!, signature: GARBAGE },
      { ...ALL[1]!, signature: "x" },
      { ...ALL[2]!, notAfterMs: `${NOT_AFTER_MS}` as unknown as number },
      approve("s3", REQUEST, { notBeforeMs: 0, notAfterMs: 1 }),
    ];
    fc.assert(
      fc.property(
        fc
          .subarray(pool)
          .chain((some) =>
            fc.tuple(
              fc.constant(some),
              fc.shuffledSubarray([...some, ...some], { minLength: some.length * 2 }),
            ),
          ),
        fc.constantFrom(THREE, LENIENT),
        ([some, shuffled], quorum) => {
          expect(verify(quorum, shuffled)).toEqual(verify(quorum, some));
        },
      ),
      { numRuns: 100 },
    );
  });

  it("INV-LC-REPLAY: a second verification is byte for byte the first, with every field", () => {
    const first: QuorumVerification = verify(THREE, ALL.slice(0, 1));
    expect(JSON.stringify(verify(THREE, ALL.slice(0, 1)))).toBe(JSON.stringify(first));
    expect({ ...first, accepted: first.accepted.length }).toEqual({
      leaseId: "acme/db/main",
      tier: "Dangerous",
      required: 3,
      received: 1,
      passed: false,
      failures: [{ kind: "BelowQuorum", code: "LC_BELOW_QUORUM", required: 3, received: 1 }],
      failuresOmitted: 0,
      accepted: 1,
      traceId: "trace-1",
      timestamp: "2027-01-15T08:00:00.000Z",
    });
  });

  it("INV-LC-REPLAY: approvals that were used before are refused by class", () => {
    const { accepted } = verify(THREE, ALL);
    const consumedIds = new Set(accepted.map(({ approvalId }) => approvalId));
    expect(consumedIds.size).toBe(3);
    expect(codesOf(verify(THREE, ALL, { consumedIds }))).toEqual([
      "LC_APPROVAL_REPLAYED",
      "LC_APPROVAL_REPLAYED",
      "LC_APPROVAL_REPLAYED",
      "LC_BELOW_QUORUM",
    ]);
  });
});

describe("a request that cannot be verified", () => {
  it.each([
    ["leaseId", { leaseId: "" }],
    ["traceId", { traceId: "a b" }],
    ["nowMs", { nowMs: Number.NaN }],
    ["nowMs", { nowMs: 1.5 }],
    ["approvals", { approvals: "s1" }],
    ["approvals", { approvals: Array.from({ length: MAX_APPROVALS + 1 }, () => ALL[0]) }],
    ["request.request", { request: undefined }],
    ["request.nonce", { request: { ...REQUEST, nonce: "1" } }],
    ["request.key", { request: { ...REQUEST, key: "a\nb" } }],
  ])("fails closed and names %s", (field, change) => {
    const input = {
      quorum: LENIENT,
      approvals: ALL,
      leaseId: "l",
      traceId: "t",
      request: REQUEST,
      nowMs: NOW_MS,
    };
    const result = verifyQuorum({ ...input, ...(change as object) });
    expect(result).toMatchObject({ passed: false, received: 0, required: 3 });
    expect(codesOf(result)).toEqual(["LC_INVALID_REQUEST", "LC_BELOW_QUORUM"]);
    expect(result.failures[0]).toMatchObject({ problem: { field } });
  });

  it("never throws, whatever stands in the list of approvals", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(fc.anything(), fc.record({ signerId: fc.constant("s1"), signature: fc.anything() })),
        ),
        (junk) => {
          expect(verify(LENIENT, junk as Approval[]).passed).toBe(false);
          expect(
            verify(LENIENT, [...(junk as Approval[]).slice(0, 3), ...ALL]).received,
          ).toBeGreaterThanOrEqual(2);
        },
      ),
      { numRuns: 200 },
    );
  });
});
