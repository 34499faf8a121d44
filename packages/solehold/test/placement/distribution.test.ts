/** How leases spread over nodes, measured over 100,000 leases and printed. The leases are fixed, so is the result. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CoordinatorCandidate, selectCoordinator } from "../../src/placement/index.ts";

const LEASES = 100_000;

function homes(weights: { readonly [nodeId: string]: number | bigint }, leases: number): readonly string[] {
  const candidates: readonly CoordinatorCandidate[] = Object.entries(weights).map(([nodeId, weight]) => ({
    nodeId,
    weight,
  }));
  return Array.from({ length: leases }, (_, lease) => {
    const selection = selectCoordinator({ candidates, leaseId: `acme/lease-${lease}`, traceId: "trace-1" });
    if (!selection.ok) throw new Error(selection.message);
    return selection.selected;
  });
}

function shareOf(nodeId: string, selected: readonly string[]): number {
  return selected.filter((home) => home === nodeId).length / selected.length;
}

describe("the share of each node", () => {
  it.each([
    [{ "node-a": 10, "node-b": 5, "node-c": 8 }],
    [{ a: 1, b: 1, c: 1, d: 1, e: 1 }],
    [{ huge: 2n ** 64n - 1n, half: 2n ** 63n, tiny: 1n }],
  ])("is its share of the weight within 1 % of all leases and within four deviations: %o", (weights) => {
    const selected = homes(weights, LEASES);
    const total = Object.values(weights).reduce<number>((sum, weight) => sum + Number(weight), 0);
    const rows = Object.entries(weights).map(([nodeId, weight]) => {
      const expected = Number(weight) / total;
      return { nodeId, expected, measured: shareOf(nodeId, selected) };
    });
    const percent = (part: number) => `${(part * 100).toFixed(2)} %`;
    const line = rows.map(
      ({ nodeId, expected, measured }) => `${nodeId} ${percent(measured)} of ${percent(expected)}`,
    );
    console.log(`share over ${LEASES} leases: ${line.join(", ")}`);
    for (const { expected, measured } of rows) {
      expect(Math.abs(measured - expected)).toBeLessThan(0.01);
      const deviation = Math.sqrt((expected * (1 - expected)) / LEASES);
      expect(Math.abs(measured - expected)).toBeLessThanOrEqual(4 * deviation + 1e-12);
    }
  });
});

describe("movement", () => {
  const before = { "node-a": 10, "node-b": 5, "node-c": 8 };
  const old = homes(before, LEASES);

  it("when a node joins goes only to it, and is as much as its share", () => {
    const now = homes({ ...before, "node-d": 7 }, LEASES);
    const moved = now.filter((home, lease) => home !== old[lease]);
    console.log(
      `joining with 7 of 30: ${((moved.length / LEASES) * 100).toFixed(2)} % of leases moved, all to node-d`,
    );
    expect(new Set(moved)).toEqual(new Set(["node-d"]));
    expect(Math.abs(moved.length / LEASES - 7 / 30)).toBeLessThan(0.01);
  });

  it("when a node leaves touches only the leases that it had", () => {
    const now = homes({ "node-a": 10, "node-c": 8 }, LEASES);
    const movedFrom = old.filter((home, lease) => home !== now[lease]);
    console.log(
      `leaving with 5 of 23: ${((movedFrom.length / LEASES) * 100).toFixed(2)} % of leases moved, all from node-b`,
    );
    expect(new Set(movedFrom)).toEqual(new Set(["node-b"]));
    expect(movedFrom.length).toBe(old.filter((home) => home === "node-b").length);
  });

  it("when a weight grows goes only to that node", () => {
    const now = homes({ ...before, "node-b": 9 }, 20_000);
    expect(new Set(now.filter((home, lease) => home !== old[lease]))).toEqual(new Set(["node-b"]));
  });

  it("goes only to the joining node for any set of nodes and weights", () => {
    const weight = fc.bigInt({ min: 1n, max: 2n ** 64n - 1n });
    fc.assert(
      fc.property(
        fc.array(weight, { minLength: 1, maxLength: 6 }),
        weight,
        fc.nat(),
        (old, joining, lease) => {
          const nodes = old.map((share, index) => ({ nodeId: `node-${index}`, weight: share }));
          const request = { leaseId: `lease-${lease}`, traceId: "trace-1" };
          const first = selectCoordinator({ ...request, candidates: nodes });
          const second = selectCoordinator({
            ...request,
            candidates: [...nodes, { nodeId: "joining", weight: joining }],
          });
          if (!first.ok || !second.ok) throw new Error("refused");
          expect(["joining", first.selected]).toContain(second.selected);
        },
      ),
      { numRuns: 500 },
    );
  });
});
