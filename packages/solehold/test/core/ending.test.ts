/** How a lease ends before its time: handoff, revoke, break. And what it leaves to the next holder. */
import { describe, expect, it } from "vitest";
import { createPolicy, endOfRecord, MAX_INSTANT_MS } from "../../src/core/index.ts";
import {
  acquire,
  breakLease,
  Cell,
  COUNTED,
  handoff,
  leaseOf,
  outcome,
  release,
  renew,
  resume,
  revoke,
  use,
} from "./cell.ts";

/** Held by a from 1000 to 6000. */
function held(policy = COUNTED): Cell {
  const cell = new Cell(policy);
  cell.run(acquire("a"), 1_000);
  return cell;
}

describe("handoff to a named successor", () => {
  function handedOn(): Cell {
    const cell = held();
    expect(outcome(cell.run(handoff("a", "b", { withinMs: 1_000 }), 2_000))).toBe("granted");
    return cell;
  }

  it("ends the lease of its holder and names the successor and the deadline", () => {
    expect(handedOn().record).toMatchObject({
      state: "released",
      endedAtMs: 2_000,
      handoff: { successor: "b", deadlineMs: 3_000 },
    });
  });

  it.each([
    [2_000, "LEASE_HANDOFF_PENDING"],
    [2_999, "LEASE_HANDOFF_PENDING"],
    [3_000, "granted"],
    [3_001, "granted"],
  ])("anybody but the successor gets, at %i with a deadline of 3000: %s", (now, expected) => {
    expect(outcome(handedOn().ask(acquire("c"), now))).toBe(expected);
    expect(outcome(handedOn().ask(acquire("a"), now))).toBe(expected);
  });

  it.each([2_000, 2_999, 3_000, 9_000])("the successor takes it at %i with a larger fence", (now) => {
    const decided = handedOn().run(acquire("b"), now);
    expect(leaseOf(decided)).toMatchObject({ holder: "b", generation: 2n, handoff: null });
    expect(decided.decision).toMatchObject({ resumeFromLedgerRequired: true });
  });

  it("the deadline has passed for others only when even the earliest store time says so", () => {
    const wide = { earliestMs: 2_999, latestMs: 3_500, stampMs: 3_500 };
    expect(outcome(handedOn().ask(acquire("c"), wide))).toBe("LEASE_HANDOFF_PENDING");
  });

  it("a denial names the successor and the deadline", () => {
    expect(handedOn().ask(acquire("c"), 2_500).decision).toEqual({
      kind: "denied",
      reason: "LEASE_HANDOFF_PENDING",
      heldBy: "b",
      heldUntilMs: 3_000,
      fence: 1n,
    });
  });

  it("the old holder can do nothing with its token any more", () => {
    for (const command of [renew("a"), use("a"), resume("a"), handoff("a", "c")]) {
      expect(outcome(handedOn().ask(command, 2_500))).toBe("LEASE_NOT_FOUND");
    }
    const released = handedOn();
    expect(released.run(release("a"), 2_500).effect).toEqual({ kind: "none" });
  });

  it("only the live holder hands on", () => {
    expect(outcome(held().ask(handoff("b", "c"), 2_000))).toBe("LEASE_HELD_BY_OTHER");
    expect(outcome(held().ask(handoff("a", "b"), 6_000))).toBe("LEASE_EXPIRED");
  });

  it("an operator ends a reservation whose successor never comes", () => {
    const cell = handedOn();
    expect(outcome(cell.run(revoke(), 2_100))).toBe("granted");
    expect(outcome(cell.ask(acquire("c"), 2_099))).toBe("LEASE_REVOKED");
    expect(cell.run(acquire("c"), 2_100).decision).toMatchObject({
      kind: "granted",
      resumeFromLedgerRequired: true,
    });
  });

  it("a reservation that has passed is nothing to revoke, and none is to be broken", () => {
    expect(outcome(handedOn().ask(revoke(), 3_000))).toBe("LEASE_NOT_FOUND");
    expect(outcome(handedOn().ask(breakLease(0), 2_100))).toBe("LEASE_NOT_FOUND");
    expect(outcome(handedOn().ask(revoke({ generation: 2n }), 2_100))).toBe("LEASE_GENERATION_STALE");
  });

  it("the record matters until the deadline", () => {
    expect(endOfRecord(handedOn().record!)).toBe(3_000);
    const cell = held();
    cell.run(release("a"), 2_000);
    expect(endOfRecord(cell.record!)).toBe(2_000);
    expect(endOfRecord(held().record!)).toBe(6_000);
  });
});

describe("revoke", () => {
  function revoked(policy = COUNTED): Cell {
    const cell = held(policy);
    cell.run(revoke(), 2_000);
    return cell;
  }

  it.each([
    [2_000, "LEASE_REVOKED"],
    [5_999, "LEASE_REVOKED"],
    [6_000, "granted"],
    [6_001, "granted"],
  ])("cools down until its holder cannot believe any more: an acquire at %i is %s", (now, expected) => {
    for (const holder of ["a", "b"]) expect(outcome(revoked().ask(acquire(holder), now))).toBe(expected);
  });

  it("says until when, but not who", () => {
    expect(revoked().ask(acquire("b"), 3_000).decision).toEqual({
      kind: "denied",
      reason: "LEASE_REVOKED",
      heldBy: null,
      heldUntilMs: 6_000,
      fence: 1n,
    });
  });

  it("can be claimed at once under that policy, with a larger fence", () => {
    const cell = revoked(createPolicy({ ...COUNTED, revoked: "claim-at-once" }));
    expect(leaseOf(cell.run(acquire("b"), 2_000)).generation).toBe(2n);
  });

  it("the holder that says it stopped ends the cool-down", () => {
    const cell = revoked();
    expect(outcome(cell.run(release("a"), 3_000))).toBe("granted");
    expect(outcome(cell.run(acquire("b"), 3_000))).toBe("granted");
  });

  it("nobody else ends the cool-down", () => {
    expect(outcome(revoked().run(release("b"), 3_000))).toBe("LEASE_HELD_BY_OTHER");
  });

  it("stops renewal, use, resume and handoff", () => {
    for (const command of [renew("a"), use("a"), resume("a"), handoff("a", "b")]) {
      expect(outcome(revoked().ask(command, 2_001))).toBe("LEASE_REVOKED");
    }
  });

  it("with a generation hits only that grant", () => {
    expect(outcome(held().ask(revoke({ generation: 2n }), 2_000))).toBe("LEASE_GENERATION_STALE");
    expect(outcome(held().ask(revoke({ generation: 1n }), 2_000))).toBe("granted");
  });

  it("bounds the cool-down by one ttl when the store's clock was set back", () => {
    const cell = new Cell();
    cell.run(acquire("a"), MAX_INSTANT_MS);
    cell.run(revoke(), 1_000);
    expect(cell.record?.expiresAtMs).toBe(6_000);
  });

  it("finds nothing on a released lease", () => {
    const cell = held();
    cell.run(release("a"), 2_000);
    expect(outcome(cell.run(revoke(), 2_001))).toBe("LEASE_NOT_FOUND");
  });
});

describe("break", () => {
  it("lets renewals reach the break and no further", () => {
    const cell = held();
    cell.run(breakLease(7_000), 2_000); // at 9000
    expect(leaseOf(cell.run(renew("a"), 3_000)).expiresAtMs).toBe(8_000);
    expect(leaseOf(cell.run(renew("a"), 5_000)).expiresAtMs).toBe(9_000);
    expect(outcome(cell.run(renew("a"), 6_000))).toBe("LEASE_BREAKING");
    expect(outcome(cell.run(acquire("b"), 9_000))).toBe("granted");
  });

  it.each([
    [3_999, "LEASE_BREAKING"],
    [4_000, "LEASE_BREAKING"],
    [4_001, "granted"],
  ])("with a period of %i ms from 2000, a lease that lasts until 6000 renews: %s", (periodMs, expected) => {
    const cell = held();
    cell.run(breakLease(periodMs), 2_000);
    expect(outcome(cell.run(renew("a"), 3_000))).toBe(expected);
  });

  it("takes nothing away that was promised before", () => {
    const cell = held();
    cell.run(breakLease(0), 2_000);
    expect(cell.record?.expiresAtMs).toBe(6_000);
    expect(outcome(cell.run(use("a"), 5_999))).toBe("granted");
    expect(outcome(cell.run(acquire("b"), 5_999))).toBe("LEASE_HELD_BY_OTHER");
  });

  it("is not outrun by acquiring again with proof of the lease", () => {
    const cell = held();
    cell.run(breakLease(4_500), 2_000); // at 6500
    cell.run(acquire("a", { provenTokenHash: cell.record!.tokenHash }), 3_000);
    cell.run(acquire("a", { provenTokenHash: cell.record!.tokenHash }), 6_000);
    expect(cell.record).toMatchObject({ expiresAtMs: 6_500, generation: 1n });
  });

  it("is not shaken off by superseding one's own lease", () => {
    const cell = held(createPolicy({ ...COUNTED, reacquire: "supersede" }));
    cell.run(breakLease(6_000), 2_000); // at 8000
    expect(leaseOf(cell.run(acquire("a"), 5_000))).toMatchObject({
      generation: 2n,
      expiresAtMs: 8_000,
      breakAtMs: 8_000,
    });
    expect(cell.run(acquire("a"), 6_000).decision).toEqual({
      kind: "denied",
      reason: "LEASE_BREAKING",
      heldBy: null,
      heldUntilMs: 8_000,
      fence: 2n,
    });
    expect(outcome(cell.run(acquire("b"), 8_000))).toBe("granted");
  });

  it("is not shaken off by a newer term", () => {
    const cell = held();
    cell.run(breakLease(6_000), 2_000);
    const proof = { provenTokenHash: cell.record!.tokenHash };
    expect(leaseOf(cell.run(acquire("a", { ...proof, term: 1n }), 5_000))).toMatchObject({
      breakAtMs: 8_000,
    });
    expect(outcome(cell.run(acquire("a", { ...proof, term: 2n }), 6_000))).toBe("LEASE_BREAKING");
  });

  it("a second break only brings the end nearer", () => {
    const cell = held();
    cell.run(breakLease(10_000), 2_000);
    cell.run(breakLease(20_000), 2_000);
    expect(cell.record?.breakAtMs).toBe(12_000);
    cell.run(breakLease(5_000), 2_000);
    expect(cell.record?.breakAtMs).toBe(7_000);
  });

  it("is not outlived by a tolerated renewal after expiry", () => {
    const cell = held(createPolicy({ ...COUNTED, renewExpired: "if-unclaimed" }));
    cell.run(breakLease(0), 2_000);
    expect(outcome(cell.run(renew("a"), 7_000))).toBe("LEASE_BREAKING");
  });

  it("with a generation hits only that grant, and nothing after the lease has ended", () => {
    expect(outcome(held().ask(breakLease(0, { generation: 2n }), 2_000))).toBe("LEASE_GENERATION_STALE");
    const cell = held();
    cell.run(revoke(), 2_000);
    expect(outcome(cell.ask(breakLease(0), 2_001))).toBe("LEASE_ALREADY_REVOKED");
    expect(outcome(new Cell().ask(breakLease(0), 2_001))).toBe("LEASE_NOT_FOUND");
  });

  it("leaves no mark on the next grant", () => {
    const cell = held();
    cell.run(breakLease(0), 2_000);
    expect(leaseOf(cell.run(acquire("b"), 6_000))).toMatchObject({ breakAtMs: null, expiresAtMs: 11_000 });
  });
});

describe("resume after a takeover", () => {
  it("a use is refused until the holder says that it resumed from persisted state", () => {
    const cell = held();
    cell.run(acquire("b"), 6_000);
    expect(outcome(cell.run(use("b"), 6_001))).toBe("LEASE_RESUME_REQUIRED");
    expect(leaseOf(cell.run(resume("b"), 6_002)).resumeRequired).toBe(false);
    expect(outcome(cell.run(use("b"), 6_003))).toBe("granted");
    expect(cell.run(resume("b"), 6_004).effect).toEqual({ kind: "none" });
  });

  it("a renewal does not forget the duty", () => {
    const cell = held();
    cell.run(acquire("b"), 6_000);
    const decided = cell.run(renew("b"), 6_001);
    expect(decided.decision).toMatchObject({ resumeFromLedgerRequired: true });
    expect(outcome(cell.run(use("b"), 6_002))).toBe("LEASE_RESUME_REQUIRED");
  });

  it("only the holder resumes", () => {
    const cell = held();
    cell.run(acquire("b"), 6_000);
    expect(outcome(cell.run(resume("a"), 6_001))).toBe("LEASE_HELD_BY_OTHER");
  });
});
