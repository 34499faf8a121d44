import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { describeFailure, exportPrivateKeySeed } from "../../src/approvals/index.ts";
import { LeaseCoordinatorService } from "../../src/facades/lease-coordinator-service.ts";
import { selectCoordinator } from "../../src/placement/index.ts";
import { approve, NOW_MS, quorumOf, REQUEST, testKey, verify } from "../approvals/fixtures.ts";

const QUORUM = quorumOf(["s1", "s2", "s3"]);
const APPROVALS = ["s1", "s2"].map((signerId) => approve(signerId));
const SELECTION = {
  candidates: [
    { nodeId: "node-a", weight: 10 },
    { nodeId: "node-b", weight: 5 },
    { nodeId: "node-c", weight: 8 },
  ],
  leaseId: "lease-1",
  traceId: "trace-1",
};

describe("LeaseCoordinatorService", () => {
  it("answers as the two functions do, with its own quorum and the default algorithm", () => {
    const service = new LeaseCoordinatorService({ quorum: QUORUM });
    expect(service.selectCoordinator(SELECTION)).toEqual(selectCoordinator(SELECTION));
    const input = {
      leaseId: "acme/db/main",
      traceId: "trace-1",
      request: REQUEST,
      approvals: APPROVALS,
      nowMs: NOW_MS,
    };
    expect(service.verifyQuorum(input)).toEqual(verify(QUORUM, APPROVALS));
  });

  it("uses its own algorithm, unless a request names another", () => {
    const service = new LeaseCoordinatorService({ quorum: QUORUM, algorithm: "product-v1" });
    expect(service.selectCoordinator(SELECTION)).toMatchObject({
      algorithm: "product-v1",
      selected: "node-a",
    });
    expect(service.selectCoordinator({ ...SELECTION, algorithm: "rendezvous-v1" })).toMatchObject({
      algorithm: "rendezvous-v1",
      selected: "node-c",
    });
  });

  it("cannot be given another quorum by a request", () => {
    const service = new LeaseCoordinatorService({ quorum: QUORUM });
    const weak = quorumOf(["s1"], { thresholds: { standard: 1, risky: 1, dangerous: 1 } });
    const input = {
      leaseId: "l",
      traceId: "t",
      request: REQUEST,
      approvals: APPROVALS,
      nowMs: NOW_MS,
      quorum: weak,
    };
    expect(service.verifyQuorum(input)).toMatchObject({ required: 3, passed: false });
  });
});

describe("secrets", () => {
  it("do not appear in results, descriptions, problems or printed objects", () => {
    const bad = [...APPROVALS, { ...APPROVALS[0]!, signature: APPROVALS[1]!.signature }, approve("rogue")];
    const result = verify(QUORUM, bad);
    const service = new LeaseCoordinatorService({ quorum: QUORUM });
    const printed = [
      JSON.stringify(result),
      ...result.failures.map(describeFailure),
      inspect(result, { depth: 9 }),
      inspect(service, { depth: 9, showHidden: true }),
      inspect(QUORUM, { depth: 9 }),
      inspect(testKey("s1").privateKey, { depth: 9, showHidden: true }),
      JSON.stringify(testKey("s1").privateKey),
    ].join("\n");
    const seeds = ["s1", "s2"].map((name) => exportPrivateKeySeed(testKey(name).privateKey));
    for (const secret of [...bad.map(({ signature }) => signature), ...seeds, testKey("s1").publicKey]) {
      expect(printed).not.toContain(secret.slice(0, 12));
    }
    expect(printed).toContain("LC_INVALID_SIGNATURE");
  });
});
