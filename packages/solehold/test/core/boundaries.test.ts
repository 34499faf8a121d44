/** One before, at, and one after: every comparison of the decision is half-open, on the bound it should ask. */
import { describe, expect, it } from "vitest";
import {
  createPolicy,
  isLiveAt,
  type LeaseCommand,
  MAX_DURATION_MS,
  MAX_INSTANT_MS,
  type StoreInstant,
} from "../../src/core/index.ts";
import {
  acquire,
  breakLease,
  Cell,
  handoff,
  leaseOf,
  outcome,
  release,
  renew,
  resume,
  revoke,
  use,
} from "./cell.ts";

const END = 6_000;

/** Held by a from 1000 to 6000. */
function held(policy = createPolicy()): Cell {
  const cell = new Cell(policy);
  cell.run(acquire("a"), 1_000);
  return cell;
}

/** Only one bound of the interval is near the end; the other is far on the safe side. */
function earliest(ms: number): StoreInstant {
  return { earliestMs: ms, latestMs: ms + 10_000, stampMs: ms + 10_000 };
}

function latest(ms: number): StoreInstant {
  return { earliestMs: 0, latestMs: ms, stampMs: ms };
}

describe("expiry at -1, 0, +1", () => {
  it.each([
    [END - 1, true],
    [END, false],
    [END + 1, false],
  ])("the record is live at %i: %s", (now, live) => {
    expect(isLiveAt(held().record!, now)).toBe(live);
  });

  const own: readonly (readonly [string, LeaseCommand])[] = [
    ["renew", renew("a")],
    ["use", use("a")],
    ["resume", resume("a")],
    ["handoff", handoff("a", "b")],
  ];

  it.each(own)(
    "an own lease is alive for %s only while even the latest store time says so",
    (_op, command) => {
      const at = (now: StoreInstant): string => outcome(held().ask(command, now));
      expect([at(latest(END - 1)), at(latest(END)), at(latest(END + 1))]).toEqual([
        "granted",
        "LEASE_EXPIRED",
        "LEASE_EXPIRED",
      ]);
    },
  );

  it("another's lease is over for an acquire only when even the earliest store time says so", () => {
    const at = (now: StoreInstant): string => outcome(held().ask(acquire("b"), now));
    expect([at(earliest(END - 1)), at(earliest(END)), at(earliest(END + 1))]).toEqual([
      "LEASE_HELD_BY_OTHER",
      "granted",
      "granted",
    ]);
  });

  it("one's own lease is regained as a new grant only when even the earliest store time says it is over", () => {
    const at = (now: StoreInstant): string => outcome(held().ask(acquire("a"), now));
    expect([at(earliest(END - 1)), at(earliest(END))]).toEqual(["LEASE_HELD_BY_SELF", "granted"]);
  });

  it("a proof of the token prolongs only while even the latest store time says that the lease lives", () => {
    const proof = { provenTokenHash: held().record!.tokenHash };
    const at = (now: StoreInstant): string => outcome(held().ask(acquire("a", proof), now));
    expect([at(latest(END - 1)), at(latest(END))]).toEqual(["granted", "LEASE_HELD_BY_SELF"]);
  });

  it("a revoked lease can be claimed only when even the earliest store time has reached its end", () => {
    const cell = held();
    cell.run(revoke(), 2_000);
    const at = (now: StoreInstant): string => outcome(cell.ask(acquire("b"), now));
    expect([at(earliest(END - 1)), at(earliest(END)), at(earliest(END + 1))]).toEqual([
      "LEASE_REVOKED",
      "granted",
      "granted",
    ]);
  });

  it.each([END - 1, END, END + 1])(
    "release, revoke and break do not care about expiry: at %i granted",
    (now) => {
      for (const command of [release("a"), revoke(), breakLease(0)]) {
        expect(outcome(held().ask(command, now))).toBe("granted");
      }
    },
  );

  it("an expiry is written from the stamp", () => {
    const lease = leaseOf(new Cell().run(acquire("a"), { earliestMs: 10, latestMs: 20, stampMs: 25 }));
    expect(lease).toMatchObject({ grantedAtMs: 25, renewedAtMs: 25, expiresAtMs: 5_025 });
  });
});

describe("the bounds of a ttl", () => {
  const policy = createPolicy({ minTtlMs: 1_000, maxTtlMs: 300_000 });

  it.each([
    [999, "LEASE_TTL_OUT_OF_BOUNDS"],
    [1_000, "granted"],
    [1_001, "granted"],
    [299_999, "granted"],
    [300_000, "granted"],
    [300_001, "LEASE_TTL_OUT_OF_BOUNDS"],
  ])("with 1000 to 300000 allowed, a ttl of %i is %s, on acquire and on renew", (ttlMs, expected) => {
    const cell = new Cell(policy);
    expect(outcome(cell.run(acquire("a", { ttlMs }), 1_000))).toBe(expected);
    expect(outcome(held(policy).run(renew("a", { ttlMs }), 2_000))).toBe(expected);
  });

  it("out of bounds is refused, names the field and the bounds, and is shown in the bundle", () => {
    const { bundle, decision } = new Cell(policy).ask(acquire("a", { ttlMs: 1 }), 1_000);
    expect(bundle).toMatchObject({ ttlInBounds: false, grantEligible: false });
    expect(decision).toMatchObject({ kind: "refused", field: "ttlMs" });
    expect(decision).toHaveProperty("message", expect.stringMatching(/1000 to 300000/));
  });

  it.each([
    0,
    -1,
    Number.NaN,
    0.5,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    MAX_DURATION_MS + 1,
    "5000" as unknown as number,
    5n as unknown as number,
  ])("a ttl of %s is refused, whatever the policy allows", (ttlMs) => {
    const wide = new Cell(createPolicy({ maxTtlMs: MAX_DURATION_MS }));
    for (const command of [acquire("a", { ttlMs }), renew("a", { ttlMs })]) {
      expect(wide.ask(command, 1_000).decision).toMatchObject({
        kind: "refused",
        reason: "INPUT_SCHEMA_INVALID",
        field: "ttlMs",
      });
    }
  });

  it("the longest ttl at the last possible instant still is an exact integer", () => {
    const cell = new Cell(createPolicy({ maxTtlMs: MAX_DURATION_MS }));
    const lease = leaseOf(cell.run(acquire("a", { ttlMs: MAX_DURATION_MS }), MAX_INSTANT_MS));
    expect(lease.expiresAtMs).toBe(MAX_INSTANT_MS + MAX_DURATION_MS);
    expect(Number.isSafeInteger(lease.expiresAtMs)).toBe(true);
    expect(new Cell().ask(acquire("a"), MAX_INSTANT_MS + 1).decision).toMatchObject({
      kind: "refused",
      field: "now.earliestMs",
    });
  });
});

describe("the bounds of other durations", () => {
  it.each([
    [0, "INPUT_SCHEMA_INVALID"],
    [1, "granted"],
    [3_600_000, "granted"],
    [3_600_001, "INPUT_SCHEMA_INVALID"],
    [MAX_DURATION_MS + 1, "INPUT_SCHEMA_INVALID"],
  ])("a handoff within %i ms is %s", (withinMs, expected) => {
    expect(outcome(held().ask(handoff("a", "b", { withinMs }), 2_000))).toBe(expected);
  });

  it("a handoff that would reserve the key for longer than any lease may last is refused by name", () => {
    const { decision } = held().ask(handoff("a", "b", { withinMs: 3_600_001 }), 2_000);
    expect(decision).toMatchObject({
      kind: "refused",
      field: "withinMs",
      message: "must be at most 3600000 ms, the longest ttl of this policy, got 3600001",
    });
  });

  it.each([
    [-1, "INPUT_SCHEMA_INVALID"],
    [0, "granted"],
    [1, "granted"],
    [MAX_DURATION_MS + 1, "INPUT_SCHEMA_INVALID"],
  ])("a break with a period of %i ms is %s", (periodMs, expected) => {
    expect(outcome(held().ask(breakLease(periodMs), 2_000))).toBe(expected);
  });
});

describe("what was promised is kept", () => {
  it("renewing for less keeps the older end, however often, until that has passed", () => {
    const cell = new Cell();
    cell.run(acquire("a", { ttlMs: 60_000 }), 0);
    for (let now = 1_000; now < 60_000; now += 1_000) {
      expect(leaseOf(cell.run(renew("a", { ttlMs: 1_000 }), now)).expiresAtMs).toBe(60_000);
    }
    expect(leaseOf(cell.run(renew("a", { ttlMs: 1_000 }), 59_500)).expiresAtMs).toBe(60_500);
    expect(leaseOf(cell.run(renew("a", { ttlMs: 1_000 }), 60_400)).expiresAtMs).toBe(61_400);
  });

  it("the ttl of a grant never shrinks: an observer waits as long as anybody may believe", () => {
    const cell = new Cell();
    cell.run(acquire("a", { ttlMs: 60_000 }), 0);
    expect(leaseOf(cell.run(renew("a", { ttlMs: 1_000 }), 1)).ttlMs).toBe(60_000);
    expect(leaseOf(cell.run(renew("a", { ttlMs: 90_000 }), 2)).ttlMs).toBe(90_000);
  });

  it("renewing for more sets the end, it never adds", () => {
    expect(leaseOf(held().run(renew("a", { ttlMs: 10_000 }), 2_000)).expiresAtMs).toBe(12_000);
  });

  it("after the store's clock was set back, a renewal bounds the end by one ttl from now", () => {
    const cell = new Cell();
    cell.run(acquire("a"), 1_000_000);
    expect(leaseOf(cell.run(renew("a", { ttlMs: 1_000 }), 500)).expiresAtMs).toBe(5_500);
  });
});
