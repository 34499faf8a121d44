import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CoordinatorCandidate,
  rankCoordinators,
  SELECTION_ALGORITHMS,
  type SelectionAlgorithm,
  selectCoordinator,
} from "../../src/placement/index.ts";

const MAX = 2n ** 64n - 1n;

function weights(table: { readonly [nodeId: string]: bigint | number }): readonly CoordinatorCandidate[] {
  return Object.entries(table).map(([nodeId, weight]) => ({ nodeId, weight }));
}

const TEN_FIVE_EIGHT = weights({ "node-a": 10, "node-b": 5, "node-c": 8 });

function selected(
  leaseId: string,
  candidates: readonly CoordinatorCandidate[],
  algorithm: SelectionAlgorithm = "rendezvous-v1",
): string {
  const selection = selectCoordinator({ candidates, leaseId, traceId: "trace-1", algorithm });
  if (!selection.ok) throw new Error(selection.message);
  return selection.selected;
}

const nodeId = fc.string({
  minLength: 1,
  maxLength: 10,
  unit: fc.constantFrom(..."abcxyz019é\uff5e\u{1f512}"),
});
const weight = fc.oneof(fc.bigInt({ min: 0n, max: 20n }), fc.bigInt({ min: 0n, max: MAX }));
const candidateSet = fc.uniqueArray(fc.record({ nodeId, weight }), {
  selector: (candidate) => candidate.nodeId,
  minLength: 1,
  maxLength: 8,
});
const leaseId = fc.string({ minLength: 1, maxLength: 30, unit: fc.constantFrom(..."lease-/0123456789é") });
const algorithm = fc.constantFrom(...SELECTION_ALGORITHMS);

describe("product-v1 selects as published", () => {
  it.each([
    ["lease-1", TEN_FIVE_EIGHT, "node-a"],
    ["lease-2", TEN_FIVE_EIGHT, "node-b"],
    ["lease-order", TEN_FIVE_EIGHT, "node-b"],
    ["lease-order", [...TEN_FIVE_EIGHT].reverse(), "node-b"],
    ["lease-fuzz-baseline", TEN_FIVE_EIGHT, "node-c"],
    ["lease-1", weights({ "node-a": 1, "node-b": 1, "node-c": 1 }), "node-b"],
    ["lease-wrap", weights({ "node-a": 2, "node-b": 1 }), "node-a"],
    ["l1", weights({ n1: 10, n2: 5, n3: 8 }), "n1"],
    [
      "lease-fuzz-max-weight",
      weights({ "node-low": 1, "node-max": MAX, "node-mid": 2 ** 32 - 1 }),
      "node-max",
    ],
  ])("%s", (lease, candidates, expected) => {
    expect(selected(lease, candidates, "product-v1")).toBe(expected);
  });
});

describe("INV-LC-DETERMINISTIC", () => {
  it("INV-LC-DETERMINISTIC: neither the order of the candidates nor the trace id changes the result", () => {
    fc.assert(
      fc.property(
        candidateSet.chain((set) =>
          fc.record({ set: fc.constant(set), shuffled: fc.shuffledSubarray(set, { minLength: set.length }) }),
        ),
        leaseId,
        algorithm,
        ({ set, shuffled }, lease, chosen) => {
          const request = { leaseId: lease, algorithm: chosen };
          const one = selectCoordinator({ ...request, candidates: set, traceId: "trace-1" });
          const two = selectCoordinator({ ...request, candidates: shuffled, traceId: "trace-2" });
          expect({ ...two, traceId: "trace-1" }).toEqual(one);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it("INV-LC-DETERMINISTIC: an equal claim goes to the smaller id by UTF-8 bytes, not by UTF-16", () => {
    // With product-v1 two nodes tie when both products are equal; weights are chosen to make them so.
    const hashes: { readonly [nodeId: string]: bigint } = {
      "node-a": 10480924048114728481n,
      "node-b": 15710578066593749647n,
    };
    const divisor = greatestCommonDivisor(hashes["node-a"]!, hashes["node-b"]!);
    const tied = weights({ "node-b": hashes["node-a"]! / divisor, "node-a": hashes["node-b"]! / divisor });
    expect(selected("lease-1", tied, "product-v1")).toBe("node-a");
    expect(selected("lease-1", [...tied].reverse(), "product-v1")).toBe("node-a");
    const emoji = selectCoordinator({
      candidates: weights({ "\u{1f512}": 1, "\uff5e": 1 }),
      leaseId: "lease-1",
      traceId: "trace-1",
    });
    expect(emoji.ok && emoji.candidates.map((candidate) => candidate.nodeId)).toEqual([
      "\uff5e",
      "\u{1f512}",
    ]);
  });

  it("INV-LC-REPLAY: the same selection again is byte for byte the same, and frozen", () => {
    const again = () =>
      JSON.stringify(
        selectCoordinator({ candidates: TEN_FIVE_EIGHT, leaseId: "lease-1", traceId: "trace-1" }),
        (_, value) => (typeof value === "bigint" ? `${value}` : value),
      );
    expect(again()).toBe(again());
    expect(again()).toBe(
      '{"ok":true,"selected":"node-c","candidates":[{"nodeId":"node-a","weight":"10"},{"nodeId":"node-b","weight":"5"},' +
        '{"nodeId":"node-c","weight":"8"}],"algorithm":"rendezvous-v1","leaseId":"lease-1","traceId":"trace-1"}',
    );
    expect(
      Object.isFrozen(selectCoordinator({ candidates: TEN_FIVE_EIGHT, leaseId: "l", traceId: "t" })),
    ).toBe(true);
  });
});

describe("the ranking", () => {
  it("begins with the selected node, and without it selects the second, and so on to the last", () => {
    fc.assert(
      fc.property(candidateSet, leaseId, algorithm, (set, lease, chosen) => {
        const request = { leaseId: lease, traceId: "trace-1", algorithm: chosen };
        const ranking = rankCoordinators({ ...request, candidates: set });
        const eligible = set.filter((candidate) => candidate.weight > 0n);
        if (!ranking.ok) {
          expect(eligible).toEqual([]);
          return;
        }
        let rest: readonly CoordinatorCandidate[] = set;
        for (const next of ranking.ranked) {
          expect(selected(lease, rest, chosen)).toBe(next);
          rest = rest.filter((candidate) => candidate.nodeId !== next);
        }
        expect(ranking.ranked.length).toBe(eligible.length);
      }),
      { numRuns: 300 },
    );
  });
});

describe("a refusal", () => {
  const refused = (request: object) => {
    const base = { candidates: TEN_FIVE_EIGHT, leaseId: "lease-1", traceId: "trace-1" };
    const result = selectCoordinator({ ...base, ...request } as Parameters<typeof selectCoordinator>[0]);
    if (result.ok) throw new Error("it was selected");
    return result;
  };

  it.each([
    ["no candidates", []],
    ["candidates of weight 0 only", weights({ "node-a": 0, "node-b": 0n })],
  ])("LC_NO_CANDIDATES answers %s", (_, candidates) => {
    expect(refused({ candidates })).toMatchObject({
      code: "LC_NO_CANDIDATES",
      field: "candidates",
      leaseId: "lease-1",
    });
    const ranking = rankCoordinators({ candidates, leaseId: "lease-1", traceId: "trace-1" });
    expect(ranking).toMatchObject({ ok: false, code: "LC_NO_CANDIDATES", traceId: "trace-1" });
  });

  it("names every node that is there twice, even one of weight 0", () => {
    const candidates = [..."bcabac"].map((nodeId, index) => ({ nodeId, weight: index === 0 ? 0 : 1 }));
    const { code, nodeIds, message } = refused({ candidates });
    expect({ code, nodeIds }).toEqual({ code: "LC_DUPLICATE_CANDIDATE", nodeIds: ["a", "b", "c"] });
    expect(message).toContain('"a", "b", "c"');
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, -1n, 2n ** 64n, "5", null, undefined])(
    "names the node whose weight is %s",
    (bad) => {
      const candidates = [
        { nodeId: "node-a", weight: 1 },
        { nodeId: "node-b", weight: bad },
      ];
      const { code, field, nodeIds, message } = refused({ candidates });
      expect({ code, field, nodeIds }).toEqual({
        code: "LC_INVALID_CANDIDATE",
        field: "candidates[1].weight",
        nodeIds: ["node-b"],
      });
      expect(message).toContain('node "node-b" must be a whole number from 0 to 2^64-1');
    },
  );

  it.each([" node", "node\0", "node\ud800", "", "no de", 7, null])(
    "names the place of the bad node id %j",
    (nodeId) => {
      const candidates = [{ nodeId, weight: 1 }];
      expect(refused({ candidates })).toMatchObject({
        code: "LC_INVALID_CANDIDATE",
        field: "candidates[0].nodeId",
      });
    },
  );

  it.each([
    ["leaseId", { leaseId: "lease\n1" }],
    ["leaseId", { leaseId: undefined }],
    ["leaseId", { leaseId: "x".repeat(1025) }],
    ["traceId", { traceId: "" }],
    ["traceId", { traceId: " t" }],
    ["algorithm", { algorithm: "rendezvous-v2" }],
    ["algorithm", { algorithm: "toString" }],
    ["candidates", { candidates: undefined }],
    [
      "candidates",
      { candidates: Array.from({ length: 10_001 }, (_, n) => ({ nodeId: `n${n}`, weight: 1 })) },
    ],
  ])("names the field %s of a bad request", (field, request) => {
    expect(refused(request)).toMatchObject({ ok: false, code: "LC_INVALID_REQUEST", field });
  });

  it.each([null, 7, "node-a"])("answers the candidate %j without throwing", (candidate) => {
    expect(refused({ candidates: [candidate] })).toMatchObject({
      code: "LC_INVALID_CANDIDATE",
      field: "candidates[0]",
    });
  });
});

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestCommonDivisor(b, a % b);
}
