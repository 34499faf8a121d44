/** For how long a lease lasts after a renewal: its own ttl when none is named, and what a shorter one does to the promise. */
import { describe, expect, it } from "vitest";
import {
  createPolicy,
  exactly,
  isStillValid,
  type LeasePolicy,
  type RenewCommand,
  validityFrom,
} from "../../src/core/index.ts";
import { acquire, breakLease, Cell, COUNTED, leaseOf, outcome, renew } from "./cell.ts";

function held(ttlMs: number, policy: Partial<LeasePolicy> = {}): Cell {
  const cell = new Cell(createPolicy({ ...COUNTED, ...policy }));
  cell.run(acquire("a", { ttlMs }), 1_000);
  return cell;
}

function renewWithoutTtl(): RenewCommand {
  const { ttlMs: _ttlMs, ...command } = renew("a");
  return command;
}

describe("a renewal that names no ttl", () => {
  it("lasts for the lease's own ttl from now, not for the policy's default", () => {
    expect(leaseOf(held(600_000).run(renewWithoutTtl(), 500_000))).toMatchObject({
      ttlMs: 600_000,
      expiresAtMs: 1_100_000,
    });
    expect(leaseOf(held(2_000).run(renewWithoutTtl(), 2_000))).toMatchObject({
      ttlMs: 2_000,
      expiresAtMs: 4_000,
    });
  });

  it("stays within the bounds of a policy that became stricter", () => {
    const cell = held(600_000);
    const stricter = new Cell(createPolicy({ ...COUNTED, maxTtlMs: 60_000, shorten: "set" }));
    stricter.record = cell.record;
    expect(leaseOf(stricter.run(renewWithoutTtl(), 500_000)).expiresAtMs).toBe(560_000);
  });

  it("is denied like every other where nothing was granted", () => {
    expect(outcome(new Cell().run(renewWithoutTtl(), 1_000))).toBe("LEASE_NOT_FOUND");
  });

  it("is not longer than the rule for approved leases allows by now", () => {
    const approval = { kind: "approved-ttl-only", maxTtlMs: 60_000 } as const;
    expect(outcome(held(600_000).run({ ...renewWithoutTtl(), approval }, 2_000))).toBe(
      "LEASE_TTL_OUT_OF_BOUNDS",
    );
    expect(outcome(held(60_000).run({ ...renewWithoutTtl(), approval }, 2_000))).toBe("granted");
  });
});

describe("a shorter ttl", () => {
  const shorter = { ttlMs: 1_000 };

  it("leaves the longer promise as it is, by default", () => {
    expect(leaseOf(held(60_000).run(renew("a", shorter), 2_000))).toMatchObject({
      ttlMs: 60_000,
      expiresAtMs: 61_000,
    });
  });

  it("sets the end to now + ttl under shorten: set, on a renewal", () => {
    const cell = held(60_000, { shorten: "set" });
    expect(leaseOf(cell.run(renew("a", shorter), 2_000))).toMatchObject({ ttlMs: 1_000, expiresAtMs: 3_000 });
    expect(outcome(cell.run(acquire("b"), 2_999))).toBe("LEASE_HELD_BY_OTHER");
    expect(outcome(cell.run(acquire("b"), 3_000))).toBe("granted");
  });

  it("sets the end to now + ttl under shorten: set, on a re-acquire", () => {
    const replaced = held(60_000, { shorten: "set", reacquire: "supersede" });
    expect(leaseOf(replaced.run(acquire("a", shorter), 2_000))).toMatchObject({
      generation: 2n,
      expiresAtMs: 3_000,
    });
    const proven = held(60_000, { shorten: "set" });
    const { tokenHash } = acquire("a");
    expect(
      leaseOf(proven.run(acquire("a", { ...shorter, provenTokenHash: tokenHash }), 2_000)).expiresAtMs,
    ).toBe(3_000);
  });

  it("never shortens what the holder did not ask to shorten: a break only keeps it from growing", () => {
    const cell = held(10_000, { shorten: "set" });
    cell.run(breakLease(20_000), 2_000);
    expect(leaseOf(cell.run(renew("a", { ttlMs: 60_000 }), 3_000)).expiresAtMs).toBe(22_000);
    expect(outcome(cell.run(renew("a", { ttlMs: 60_000 }), 4_000))).toBe("LEASE_BREAKING");
  });

  it("is safe under shorten: set for a holder that believes the shorter ttl from before it asks", () => {
    const cell = held(60_000, { shorten: "set" });
    const drift = { driftRatio: 0.01, tickMs: 0 };
    // The holder lowers its belief, sends, and never sees the reply. The store decides 400 ms later.
    const belief = validityFrom({ monotonicMs: 2_000, wallMs: 2_000 }, shorter.ttlMs, drift);
    cell.run(renew("a", shorter), exactly(2_400));
    for (let nowMs = 2_400; nowMs < 5_000; nowMs += 100) {
      const believes = isStillValid(belief, { monotonicMs: nowMs, wallMs: nowMs });
      const claimable = outcome(cell.ask(acquire("b"), nowMs)) === "granted";
      expect(believes && claimable).toBe(false);
    }
  });
});
