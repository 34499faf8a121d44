/** Document 003, coordinator selection and quorum, in its own words: `LeaseCoordinatorService`. */
import { describe, expect, it } from "vitest";
import {
  CoordinatorError,
  exportPublicKey,
  generateKeyPair,
  LeaseCoordinatorService,
} from "../../../src/facades/seeds.ts";
import { approve, NOW_MS, REQUEST, testKey } from "../../approvals/fixtures.ts";

const SIGNERS = ["s1", "s2", "s3"] as const;
const knownSigners = Object.fromEntries(SIGNERS.map((name) => [name, testKey(name).publicKey]));
const service = new LeaseCoordinatorService({ knownSigners });
const interop = new LeaseCoordinatorService({ knownSigners, algorithm: "product-v1" });

const CANDIDATES = [
  { nodeId: "node-a", weight: 10 },
  { nodeId: "node-b", weight: 5 },
  { nodeId: "node-c", weight: 8 },
];
const LEASE = { leaseId: "lease-1", traceId: "trace-1" };

function quorum(tier: string, signers: readonly string[], on: LeaseCoordinatorService = service, more = {}) {
  const request = { ...REQUEST, tier };
  const approvals = signers.map((signerId) => approve(signerId, request));
  return on.verifyQuorum({ ...LEASE, request, approvals, nowMs: NOW_MS, ...more });
}

describe("003: select_coordinator", () => {
  it("INV-LC-DETERMINISTIC: the same candidates and lease give the same node, in any order and for any trace_id", () => {
    const first = service.selectCoordinator({ ...LEASE, candidates: CANDIDATES });
    for (const candidates of [CANDIDATES, [...CANDIDATES].reverse()]) {
      const again = service.selectCoordinator({ leaseId: LEASE.leaseId, traceId: "other", candidates });
      expect(again).toMatchObject({ ok: true, selected: first.ok ? first.selected : "" });
    }
  });

  it("INV-LC-REPLAY: selection and verification are identical on replay", () => {
    const select = () => service.selectCoordinator({ ...LEASE, candidates: CANDIDATES });
    expect(select()).toEqual(select());
    expect(quorum("Risky", ["s1", "s2", "rogue"])).toEqual(quorum("Risky", ["s1", "s2", "rogue"]));
  });

  it("CoordinatorSelection has candidates, lease_id, selected and trace_id", () => {
    const selection = service.selectCoordinator({
      ...LEASE,
      candidates: [...CANDIDATES, { nodeId: "node-d", weight: 0 }],
    });
    expect(selection).toMatchObject({
      leaseId: "lease-1",
      traceId: "trace-1",
      selected: expect.stringMatching(/^node-[abc]$/),
      candidates: [
        { nodeId: "node-a", weight: 10n },
        { nodeId: "node-b", weight: 5n },
        { nodeId: "node-c", weight: 8n },
      ],
    });
  });

  it("CoordinatorCandidate has a node_id that is checked, and a weight of 64 bits that is exact", () => {
    const heavy = [
      { nodeId: "node-low", weight: 1 },
      { nodeId: "node-max", weight: 2n ** 64n - 1n },
    ];
    expect(service.selectCoordinator({ ...LEASE, candidates: heavy })).toMatchObject({
      selected: "node-max",
    });
    for (const nodeId of ["", " node", "node\0", "node\n"]) {
      const refused = service.selectCoordinator({ ...LEASE, candidates: [{ nodeId, weight: 1 }] });
      expect(refused).toMatchObject({ ok: false, field: "candidates[0].nodeId" });
    }
    const over = service.selectCoordinator({ ...LEASE, candidates: [{ nodeId: "a", weight: 2n ** 64n }] });
    expect(over).toMatchObject({ ok: false, field: "candidates[0].weight" });
  });

  it("LC_NO_CANDIDATES: none given, or none with a weight", () => {
    for (const candidates of [[], [{ nodeId: "node-a", weight: 0 }]])
      expect(service.selectCoordinator({ ...LEASE, candidates })).toMatchObject({ code: "LC_NO_CANDIDATES" });
  });

  it.each([
    ["lease-1", CANDIDATES, "node-a"],
    ["lease-2", CANDIDATES, "node-b"],
    ["lease-order", [...CANDIDATES].reverse(), "node-b"],
    ["lease-fuzz-baseline", CANDIDATES, "node-c"],
    ["lease-1", CANDIDATES.map(({ nodeId }) => ({ nodeId, weight: 1 })), "node-b"],
    [
      "lease-wrap",
      [
        { nodeId: "node-a", weight: 2 },
        { nodeId: "node-b", weight: 1 },
      ],
      "node-a",
    ],
    [
      "l1",
      [
        { nodeId: "n1", weight: 10 },
        { nodeId: "n2", weight: 5 },
        { nodeId: "n3", weight: 8 },
      ],
      "n1",
    ],
    [
      "lease-fuzz-max-weight",
      [
        { nodeId: "node-low", weight: 1 },
        { nodeId: "node-max", weight: 2n ** 64n - 1n },
        { nodeId: "node-mid", weight: 2 ** 32 - 1 },
      ],
      "node-max",
    ],
  ])("weighted hash, product-v1: %s goes to the document's node", (leaseId, candidates, selected) => {
    expect(interop.selectCoordinator({ leaseId, traceId: "t", candidates })).toMatchObject({ selected });
  });

  it("by default wins as often as its weight says: 10, 5 and 8 of 23", () => {
    const wins = new Map<string, number>();
    const rounds = 4_600;
    for (let round = 0; round < rounds; round += 1) {
      const selection = service.selectCoordinator({
        leaseId: `l-${round}`,
        traceId: "t",
        candidates: CANDIDATES,
      });
      if (selection.ok) wins.set(selection.selected, (wins.get(selection.selected) ?? 0) + 1);
    }
    for (const { nodeId, weight } of CANDIDATES)
      expect(Math.abs((wins.get(nodeId) ?? 0) / rounds - weight / 23)).toBeLessThan(0.03);
  });
});

describe("003: verify_quorum", () => {
  it.each([
    ["standard-1-of-1", "Standard", ["s1"], true, []],
    ["risky-2-of-2", "Risky", ["s1", "s2"], true, []],
    ["risky-1-of-2", "Risky", ["s1"], false, ["LC_BELOW_QUORUM"]],
    ["dangerous-3-of-3", "Dangerous", ["s1", "s2", "s3"], true, []],
    ["unknown-signer", "Standard", ["s1", "rogue"], false, ["LC_UNKNOWN_SIGNER"]],
  ] as const)("%s", (_name, tier, signers, passed, codes) => {
    const verification = quorum(tier, signers);
    expect(verification.passed).toBe(passed);
    expect(verification.failures.map(({ code }) => code)).toEqual(codes);
  });

  it("invalid-signature: LC_INVALID_SIGNATURE, then LC_BELOW_QUORUM with required and received", () => {
    const request = { ...REQUEST, tier: "Standard" };
    const approvals = [approve("s1", request, {}, "another-key")];
    const verification = service.verifyQuorum({ ...LEASE, request, approvals, nowMs: NOW_MS });
    expect(verification).toMatchObject({
      passed: false,
      failures: [
        { kind: "InvalidSignature", code: "LC_INVALID_SIGNATURE", signerId: "s1" },
        { kind: "BelowQuorum", code: "LC_BELOW_QUORUM", required: 1, received: 0 },
      ],
    });
  });

  it("QuorumVerification has lease_id, tier, required, received, passed, failures, trace_id and timestamp", () => {
    expect(quorum("Risky", ["s1", "s1"])).toMatchObject({
      leaseId: "lease-1",
      tier: "Risky",
      required: 2,
      received: 1,
      passed: false,
      failures: [{ kind: "BelowQuorum", required: 2, received: 1 }],
      traceId: "trace-1",
      timestamp: new Date(NOW_MS).toISOString(),
    });
  });

  it("INV-LC-QUORUM-TIER: the thresholds of QuorumConfig are those of the tiers, growing, and 0 counts as 1", () => {
    const config = { standardThreshold: 0, riskyThreshold: 2, dangerousThreshold: 3 };
    const own = new LeaseCoordinatorService({ knownSigners, config });
    const required = ["Standard", "Risky", "Dangerous"].map((tier) => quorum(tier, [], own).required);
    expect(required).toEqual([1, 2, 3]);
    const shrinking = { standardThreshold: 3, riskyThreshold: 2, dangerousThreshold: 1 };
    expect(() => new LeaseCoordinatorService({ knownSigners, config: shrinking })).toThrow(CoordinatorError);
    expect(() => new LeaseCoordinatorService({ knownSigners, config: shrinking })).toThrow(/risky/);
  });

  it("an unknown tier is the most demanding one", () => {
    expect(quorum("Whatever", ["s1", "s2"])).toMatchObject({ tier: "Dangerous", required: 3, passed: false });
  });

  it("INV-LC-VERIFY-CLASSIFIED: UnknownSigner by id, InvalidSignature by id, BelowQuorum last", () => {
    const request = { ...REQUEST, tier: "Dangerous" };
    const bad = ["s2", "s1"].map((signerId) => approve(signerId, request, {}, "another-key"));
    const approvals = [...bad, approve("z", request), approve("b", request)];
    const { failures } = service.verifyQuorum({ ...LEASE, request, approvals, nowMs: NOW_MS });
    expect(failures.map((failure) => [failure.kind, "signerId" in failure ? failure.signerId : ""])).toEqual([
      ["UnknownSigner", "b"],
      ["UnknownSigner", "z"],
      ["InvalidSignature", "s1"],
      ["InvalidSignature", "s2"],
      ["BelowQuorum", ""],
    ]);
  });

  it("lists at most 256 failures and never loses BelowQuorum", () => {
    const strangers = Array.from({ length: 300 }, (_, index) => `rogue-${index}`);
    const { failures } = quorum("Standard", strangers);
    expect(failures).toHaveLength(256);
    expect(failures.at(-1)).toMatchObject({ kind: "BelowQuorum", required: 1, received: 0 });
  });

  it("strict: one bad signature fails a quorum that is met; lenient reports it and passes", () => {
    expect(quorum("Standard", ["s1", "rogue"])).toMatchObject({ passed: false, received: 1 });
    const lenient = new LeaseCoordinatorService({ knownSigners, mode: "lenient" });
    expect(quorum("Standard", ["s1", "rogue"], lenient)).toMatchObject({
      passed: true,
      failures: [{ kind: "UnknownSigner", signerId: "rogue" }],
    });
  });

  it("a signature fits one request only, in its window, and one use", () => {
    const request = { ...REQUEST, tier: "Standard" };
    const approvals = [approve("s1", request)];
    const check = (changes: object, more: object = {}) =>
      service.verifyQuorum({
        ...LEASE,
        request: { ...request, ...changes },
        approvals,
        nowMs: NOW_MS,
        ...more,
      });
    const passed = check({});
    expect(passed.passed).toBe(true);
    for (const changes of [
      { tenant: "other" },
      { key: "other" },
      { holder: "other" },
      { purpose: "Operation" },
      { ttlMs: 15_001 },
      { nonce: "b".repeat(22) },
    ])
      expect(check(changes).passed).toBe(false);
    expect(check({}, { nowMs: NOW_MS + 60_000 }).passed).toBe(false);
    const consumedIds = new Set(passed.accepted.map(({ approvalId }) => approvalId));
    expect(check({}, { consumedIds }).passed).toBe(false);
  });

  it("exportPublicKey takes what generateKeyPair gives: the pair, its private key or its public key", () => {
    const pair = generateKeyPair();
    for (const key of [pair, pair.privateKey, pair.publicKey])
      expect(exportPublicKey(key)).toBe(pair.publicKey);
    expect(() => exportPublicKey("not a key")).toThrow(/43 characters/);
  });
});
