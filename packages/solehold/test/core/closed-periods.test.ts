/** A key that is closed for a while: a minimum hold from the grant on, and a delay after an expiry. */
import { describe, expect, it } from "vitest";
import {
  type AcquireCommand,
  commandProblem,
  createPolicy,
  decide,
  endOfRecord,
  exactly,
} from "../../src/core/index.ts";
import { acquire, Cell, handoff, leaseOf, outcome, release, renew, revoke } from "./cell.ts";

/** Granted at 1,000 with a ttl of 5 s, see cell.ts. */
function granted(periods: Pick<AcquireCommand, "holdAtLeastMs" | "lockDelayMs">): Cell {
  const cell = new Cell();
  cell.run(acquire("a", periods), 1_000);
  return cell;
}

const TTL_MS = 5_000;
const EXPIRES_MS = 1_000 + TTL_MS;

function releasedEarly(): Cell {
  const cell = granted({ holdAtLeastMs: 60_000 });
  cell.run(release("a"), 2_000);
  return cell;
}

describe("a minimum hold", () => {
  it.each([
    [2_000, "LEASE_LOCK_DELAY"],
    [60_999, "LEASE_LOCK_DELAY"],
    [61_000, "granted"],
  ])("closes a key that was released early: at %i %s", (now, expected) => {
    expect(outcome(releasedEarly().ask(acquire("b"), now))).toBe(expected);
    expect(outcome(releasedEarly().ask(acquire("a"), now))).toBe(expected);
  });

  it("closes a key whose lease expired before it was over", () => {
    const cell = granted({ holdAtLeastMs: TTL_MS + 5_000 });
    expect(outcome(cell.ask(acquire("b"), EXPIRES_MS + 4_999))).toBe("LEASE_LOCK_DELAY");
    expect(outcome(cell.ask(acquire("b"), EXPIRES_MS + 5_000))).toBe("granted");
  });

  it("changes nothing for a lease that is held for longer: it can be claimed when it ends", () => {
    const cell = granted({ holdAtLeastMs: 500 });
    cell.run(release("a"), 2_000);
    expect(outcome(cell.ask(acquire("b"), 2_000))).toBe("granted");
  });

  it("counts from the grant, and is neither moved nor ended by a renewal", () => {
    const cell = granted({ holdAtLeastMs: 60_000 });
    cell.run(renew("a"), 5_000);
    expect(cell.record).toMatchObject({ renewals: 1 });
    expect(cell.record?.minHoldUntilMs).toBe(61_000);
  });

  it("has passed only when even the earliest store time says so", () => {
    const wide = { earliestMs: 60_999, latestMs: 62_000, stampMs: 62_000 };
    expect(outcome(releasedEarly().ask(acquire("b"), wide))).toBe("LEASE_LOCK_DELAY");
  });

  it("is denied with the instant from which waiting helps, and with nobody's name", () => {
    expect(releasedEarly().ask(acquire("b"), 2_100).decision).toEqual({
      kind: "denied",
      reason: "LEASE_LOCK_DELAY",
      heldBy: null,
      heldUntilMs: 61_000,
      fence: 1n,
    });
  });

  it("keeps out a waiter that a release would serve with the same write: only the release is written", () => {
    const cell = granted({ holdAtLeastMs: 60_000 });
    const { effect } = cell.ask(release("a", { next: acquire("b") }), 2_000);
    expect(effect).toMatchObject({ kind: "write", record: { holder: "a", state: "released" } });
  });

  it("keeps out a waiter with a ticket", () => {
    const cell = granted({ holdAtLeastMs: 60_000 });
    cell.run(release("a", { reserveFor: { ticket: "t", withinMs: 250 } }), 2_000);
    expect(outcome(cell.ask(acquire("b", { ticket: "t" }), 2_100))).toBe("LEASE_LOCK_DELAY");
  });

  it("lets the successor of a handoff in: the same work goes on", () => {
    const cell = granted({ holdAtLeastMs: 60_000 });
    cell.run(handoff("a", "b", { withinMs: 10_000 }), 2_000);
    expect(outcome(cell.ask(acquire("b"), 3_000))).toBe("granted");
    // The successor did not come: the others still wait for the minimum hold.
    expect(outcome(cell.ask(acquire("c"), 20_000))).toBe("LEASE_LOCK_DELAY");
  });

  it("is ended by a revoke, before and after the release", () => {
    const cell = releasedEarly();
    cell.run(revoke(), 3_000);
    expect(outcome(cell.ask(acquire("b"), 3_000))).toBe("granted");
    const held = granted({ holdAtLeastMs: TTL_MS * 3 });
    held.run(revoke(), 3_000);
    expect(outcome(held.ask(acquire("b"), EXPIRES_MS))).toBe("granted");
  });

  it("keeps its record from being collected", () => {
    expect(endOfRecord(releasedEarly().record as NonNullable<Cell["record"]>)).toBe(61_000);
  });

  it("is not shortened by a holder that replaces its own lease", () => {
    const policy = createPolicy({ reacquire: "supersede" });
    const { record } = granted({ holdAtLeastMs: 60_000 });
    const replaced = decide(acquire("a"), { record, floor: 0n }, exactly(2_000), policy);
    expect(leaseOf(replaced).minHoldUntilMs).toBe(61_000);
  });

  it("is set by an acquire that finds its own lease", () => {
    const cell = granted({});
    cell.run(acquire("a", { provenTokenHash: acquire("a").tokenHash, holdAtLeastMs: 60_000 }), 2_000);
    expect(cell.record).toMatchObject({ renewals: 1, minHoldUntilMs: 62_000 });
  });

  it("is refused where a release leaves no record to keep it", () => {
    const policy = createPolicy({ release: "delete" });
    const asked = acquire("a", { holdAtLeastMs: 1 });
    expect(decide(asked, { record: null, floor: 0n }, exactly(1_000), policy).decision).toMatchObject({
      kind: "refused",
      field: "holdAtLeastMs",
    });
  });
});

describe("a lock-delay", () => {
  it.each([
    [EXPIRES_MS - 1, "LEASE_HELD_BY_OTHER"],
    [EXPIRES_MS, "LEASE_LOCK_DELAY"],
    [EXPIRES_MS + 4_999, "LEASE_LOCK_DELAY"],
    [EXPIRES_MS + 5_000, "granted"],
  ])("closes the key after an expiry: at %i %s", (now, expected) => {
    expect(outcome(granted({ lockDelayMs: 5_000 }).ask(acquire("b"), now))).toBe(expected);
  });

  it("binds the holder that expired, too", () => {
    expect(outcome(granted({ lockDelayMs: 5_000 }).ask(acquire("a"), EXPIRES_MS + 1))).toBe(
      "LEASE_LOCK_DELAY",
    );
  });

  it("does not follow a release", () => {
    const cell = granted({ lockDelayMs: 5_000 });
    cell.run(release("a"), 2_000);
    expect(outcome(cell.ask(acquire("b"), 2_000))).toBe("granted");
  });

  it("moves with the expiry", () => {
    const cell = granted({ lockDelayMs: 5_000 });
    cell.run(renew("a"), 3_000);
    expect(outcome(cell.ask(acquire("b"), 8_000 + 4_999))).toBe("LEASE_LOCK_DELAY");
  });

  it("is the policy's where the request names none, and the request's where it does", () => {
    const policy = createPolicy({ lockDelayMs: 7_000 });
    const grant = (command: AcquireCommand): number =>
      leaseOf(decide(command, { record: null, floor: 0n }, exactly(1_000), policy)).lockDelayMs;
    expect(grant(acquire("a"))).toBe(7_000);
    expect(grant(acquire("a", { lockDelayMs: 0 }))).toBe(0);
  });

  it("can be ended by an operator", () => {
    const cell = granted({ lockDelayMs: 5_000 });
    cell.run(revoke(), EXPIRES_MS + 1);
    expect(outcome(cell.ask(acquire("b"), EXPIRES_MS + 1))).toBe("granted");
  });
});

it.each(["holdAtLeastMs", "lockDelayMs"])("%s must be a whole number of milliseconds", (field) => {
  for (const value of [-1, 0.5, Number.NaN, "1m", 400 * 24 * 3_600_000]) {
    expect(commandProblem({ ...acquire("a"), [field]: value })).toMatchObject({ field });
  }
});
