/** Seed 001 at the level of `decide`: the actor lease executor and the invariants of its model. */
import { describe, expect, it } from "vitest";
import { exactly, isLiveAt, phaseAt, recordFence } from "../../src/core/index.ts";
import { acquire, Cell, KEY, leaseOf, outcome, release, renew, revoke } from "./cell.ts";

/** Duration 5000, granted at 1000 to n1. */
function held(): Cell {
  const cell = new Cell();
  expect(leaseOf(cell.run(acquire("n1"), 1_000)).expiresAtMs).toBe(6_000);
  return cell;
}

describe("the vectors of the lease executor", () => {
  it.each([
    [1_000, true],
    [5_999, true],
    [6_000, false],
    [6_001, false],
  ])("a lease of 5000 granted at 1000 is valid at %i: %s", (now, valid) => {
    expect(isLiveAt(held().record!, now)).toBe(valid);
  });

  it("LeaseUniqueness: at 5999 another node is refused, and learns who holds it and until when", () => {
    expect(held().ask(acquire("n2"), 5_999).decision).toEqual({
      kind: "denied",
      reason: "LEASE_HELD_BY_OTHER",
      heldBy: "n1",
      heldUntilMs: 6_000,
      fence: 1n,
    });
  });

  it("ExpiredLeaseClaimable: at 6000 another node is granted until 11000", () => {
    const cell = held();
    const lease = leaseOf(cell.run(acquire("n2"), 6_000));
    expect(lease).toMatchObject({ holder: "n2", expiresAtMs: 11_000, generation: 2n });
  });

  it("a renewal at 3000 moves the expiry to 8000 and is counted", () => {
    expect(leaseOf(held().run(renew("n1"), 3_000))).toMatchObject({ expiresAtMs: 8_000, renewals: 1 });
  });

  it("a renewal at 6000 is expired", () => {
    expect(outcome(held().run(renew("n1"), 6_000))).toBe("LEASE_EXPIRED");
  });

  it("RenewalRequiresOwnership: another node that renews an expired lease is not its holder", () => {
    const decided = held().run(renew("n2"), 6_000);
    expect(decided.decision).toMatchObject({ kind: "denied", reason: "LEASE_HELD_BY_OTHER", heldBy: "n1" });
  });

  it("RenewalRequiresOwnership: another node cannot renew a live lease, even with its holder's token", () => {
    const cell = held();
    expect(outcome(cell.run(renew("n2"), 2_000))).toBe("LEASE_HELD_BY_OTHER");
    const stolen = { tokenHash: cell.record!.tokenHash };
    expect(outcome(cell.run(renew("n2", stolen), 2_000))).toBe("LEASE_HELD_BY_OTHER");
  });

  it("the order on renew is: not found, not holder, expired", () => {
    expect(outcome(new Cell().run(renew("n2"), 9_000))).toBe("LEASE_NOT_FOUND");
    expect(outcome(held().run(renew("n2"), 9_000))).toBe("LEASE_HELD_BY_OTHER");
    expect(outcome(held().run(renew("n1"), 9_000))).toBe("LEASE_EXPIRED");
  });

  it("the holder may release its expired lease while nobody has taken it", () => {
    const cell = held();
    expect(outcome(cell.run(release("n1"), 7_000))).toBe("granted");
    expect(cell.record).toMatchObject({ state: "released", endedAtMs: 7_000 });
  });

  it("the same holder asking for its live lease is refused, and nothing is written", () => {
    const decided = held().run(acquire("n1", { tokenHash: "x".repeat(43) }), 2_000);
    expect(outcome(decided)).toBe("LEASE_HELD_BY_SELF");
    expect(decided.effect).toEqual({ kind: "none" });
  });

  it("two namespaces with the same id do not conflict", () => {
    const other = new Cell();
    held();
    const lease = leaseOf(other.run(acquire("n2", { key: { tenant: "other", name: KEY.name } }), 1_001));
    expect(lease.key).toEqual({ tenant: "other", name: KEY.name });
  });
});

describe("GracePeriodRespected: the last part of a lease belongs to its holder", () => {
  it.each([
    [1_000, "active"],
    [4_999, "active"],
    [5_000, "grace"],
    [5_001, "grace"],
    [5_999, "grace"],
    [6_000, "expired"],
    [6_001, "expired"],
  ])("duration 5000 at 1000 with grace 1000 is, at %i, %s", (now, phase) => {
    expect(phaseAt(held().record!, now, 1_000)).toBe(phase);
  });

  it("in grace the holder renews and another is refused", () => {
    expect(outcome(held().run(renew("n1"), 5_500))).toBe("granted");
    expect(outcome(held().run(acquire("n2"), 5_500))).toBe("LEASE_HELD_BY_OTHER");
  });

  it("without grace a lease is active until it expires, and an ended one is expired at once", () => {
    const cell = held();
    expect(phaseAt(cell.record!, 5_999, 0)).toBe("active");
    cell.run(release("n1"), 2_000);
    expect(phaseAt(cell.record!, 2_000, 1_000)).toBe("expired");
  });
});

describe("FencingTokenMonotonic", () => {
  it("is 1 at the first grant, unchanged by renewal, and one more at every new grant", () => {
    const cell = new Cell();
    const fences: bigint[] = [];
    const grant = (holder: string, now: number): void => {
      fences.push(recordFence(leaseOf(cell.run(acquire(holder), now))));
    };
    grant("n1", 1_000);
    expect(recordFence(leaseOf(cell.run(renew("n1"), 2_000)))).toBe(1n);
    grant("n2", 7_000); // over expiry
    cell.run(release("n2"), 8_000);
    grant("n2", 8_000); // over release, to the same holder
    cell.run(revoke(), 9_000);
    grant("n1", 13_000); // over revoke
    expect(fences).toEqual([1n, 2n, 3n, 4n]);
  });

  it("continues above the floor when the record was collected", () => {
    const cell = new Cell();
    for (let now = 0; now < 5; now += 1) {
      cell.run(acquire("n1"), now);
      cell.run(release("n1"), now);
    }
    cell.collect();
    expect(recordFence(leaseOf(cell.run(acquire("n1"), 10)))).toBe(6n);
  });

  it("continues above the store's revision where that is ahead of the record", () => {
    const cell = held();
    cell.floor = 100n;
    expect(leaseOf(cell.run(acquire("n2"), 6_000)).generation).toBe(101n);
  });

  it("refuses when the generation is used up instead of going back", () => {
    const cell = held();
    cell.record = { ...cell.record!, generation: 2n ** 64n - 1n };
    expect(outcome(cell.ask(acquire("n2"), 6_000))).toBe("FENCE_EXHAUSTED");
    cell.record = { ...cell.record, generation: 2n ** 64n - 2n };
    expect(leaseOf(cell.ask(acquire("n2"), 6_000)).generation).toBe(2n ** 64n - 1n);
    const empty = new Cell();
    empty.floor = 2n ** 64n - 1n;
    expect(outcome(empty.ask(acquire("n2"), exactly(1)))).toBe("FENCE_EXHAUSTED");
  });
});
