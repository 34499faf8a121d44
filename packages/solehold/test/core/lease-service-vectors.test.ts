/** Seed 000 at the level of `decide`: purposes, expiry, renewal, stale use. Times are seconds times 1000. */
import { describe, expect, it } from "vitest";
import { isLiveAt, PURPOSES, type Purpose } from "../../src/core/index.ts";
import { acquire, Cell, leaseOf, outcome, renew, revoke, use } from "./cell.ts";

const SECOND = 1_000;
const GRANTED_AT = 100 * SECOND;

function granted(purpose: Purpose, ttlSeconds: number): Cell {
  const cell = new Cell();
  expect(outcome(cell.run(acquire("a", { purpose, ttlMs: ttlSeconds * SECOND }), GRANTED_AT))).toBe(
    "granted",
  );
  return cell;
}

function at(seconds: number): number {
  return GRANTED_AT + seconds * SECOND;
}

describe("the vectors of the lease service", () => {
  it("grant-and-use: a lease of 60 s is used at +10 s", () => {
    expect(outcome(granted("Operation", 60).run(use("a"), at(10)))).toBe("granted");
  });

  it("expired-use-rejected: INV-LS-EXPIRY, INV-LS-STALE-REJECT: a lease of 60 s is not used at +100 s", () => {
    const cell = granted("StateWrite", 60);
    expect(outcome(cell.run(use("a", { purpose: "StateWrite" }), at(100)))).toBe("LEASE_EXPIRED");
  });

  it("renewal-extends-ttl: INV-LS-RENEWAL: renewed at +50 s it is used at +100 s", () => {
    const cell = granted("Operation", 60);
    expect(outcome(cell.run(renew("a", { ttlMs: 60 * SECOND }), at(50)))).toBe("granted");
    expect(outcome(cell.run(use("a"), at(100)))).toBe("granted");
  });

  it("revoked-use-rejected: INV-LS-STALE-REJECT: revoked at +10 s it is not used at +20 s", () => {
    const cell = granted("MigrationHandoff", 120);
    expect(outcome(cell.run(revoke(), at(10)))).toBe("granted");
    expect(outcome(cell.run(use("a", { purpose: "MigrationHandoff" }), at(20)))).toBe("LEASE_REVOKED");
  });

  it("purpose-mismatch: INV-LS-PURPOSE: an Operation lease is not used as MigrationHandoff", () => {
    const cell = granted("Operation", 60);
    expect(outcome(cell.run(use("a", { purpose: "MigrationHandoff" }), at(10)))).toBe(
      "LEASE_PURPOSE_MISMATCH",
    );
  });
});

describe("the further checks of the lease service", () => {
  it("INV-LS-EXPIRY: a lease of 60 s granted at 100 s is alive at 159 s and dead at 160 s", () => {
    const cell = granted("Operation", 60);
    expect(outcome(cell.ask(use("a"), 159 * SECOND))).toBe("granted");
    expect(outcome(cell.ask(use("a"), 160 * SECOND - 1))).toBe("granted");
    expect(outcome(cell.ask(use("a"), 160 * SECOND))).toBe("LEASE_EXPIRED");
    expect(cell.record?.expiresAtMs).toBe(160 * SECOND);
  });

  it("INV-LS-RENEWAL: renewed at 150 s it is alive at 209 s and dead at 210 s, and keeps when it was granted", () => {
    const cell = granted("Operation", 60);
    const lease = leaseOf(cell.run(renew("a", { ttlMs: 60 * SECOND }), 150 * SECOND));
    expect(lease).toMatchObject({ grantedAtMs: GRANTED_AT, renewedAtMs: 150 * SECOND, renewals: 1 });
    expect(outcome(cell.ask(use("a"), 209 * SECOND))).toBe("granted");
    expect(outcome(cell.ask(use("a"), 210 * SECOND))).toBe("LEASE_EXPIRED");
  });

  it("INV-LS-RENEWAL: a renewal at 160 s is refused as expired and changes nothing", () => {
    const cell = granted("Operation", 60);
    const before = cell.record;
    const decided = cell.run(renew("a", { ttlMs: 60 * SECOND }), 160 * SECOND);
    expect(outcome(decided)).toBe("LEASE_EXPIRED");
    expect(decided.effect).toEqual({ kind: "none" });
    expect(cell.record).toBe(before);
  });

  it("INV-LS-STALE-REJECT: expired and of the wrong purpose is stale, not a mismatch", () => {
    const cell = granted("Operation", 60);
    expect(outcome(cell.ask(use("a", { purpose: "StateWrite" }), at(60)))).toBe("LEASE_EXPIRED");
  });

  it("INV-LS-STALE-REJECT: revoked and of the wrong purpose is stale, not a mismatch", () => {
    const cell = granted("Operation", 60);
    cell.run(revoke(), at(1));
    expect(outcome(cell.ask(use("a", { purpose: "StateWrite" }), at(2)))).toBe("LEASE_REVOKED");
  });

  it("a lease that is revoked and expired says revoked when it is renewed", () => {
    const cell = granted("Operation", 60);
    cell.run(revoke(), at(10));
    expect(outcome(cell.ask(renew("a"), at(100)))).toBe("LEASE_REVOKED");
  });

  it("revoke works on an expired lease, and a second revoke says that it was done before", () => {
    const cell = granted("Operation", 60);
    expect(outcome(cell.run(revoke(), at(100)))).toBe("granted");
    expect(outcome(cell.run(revoke(), at(101)))).toBe("LEASE_ALREADY_REVOKED");
  });

  it("renew and use of a key that was never granted are not found", () => {
    expect(outcome(new Cell().run(renew("a"), 1))).toBe("LEASE_NOT_FOUND");
    expect(outcome(new Cell().run(use("a"), 1))).toBe("LEASE_NOT_FOUND");
    expect(outcome(new Cell().run(revoke(), 1))).toBe("LEASE_NOT_FOUND");
  });

  it("use never renews and never writes", () => {
    const cell = granted("Operation", 60);
    const before = cell.record;
    expect(cell.run(use("a"), at(59)).effect).toEqual({ kind: "none" });
    expect(cell.record).toBe(before);
  });

  it("two leases of 60 s granted at 100 s: both active at 110 s, none at 200 s", () => {
    const records = [granted("Operation", 60), granted("StateWrite", 60)].map(({ record }) => record!);
    expect(records.filter((record) => isLiveAt(record, 110 * SECOND))).toHaveLength(2);
    expect(records.filter((record) => isLiveAt(record, 200 * SECOND))).toHaveLength(0);
  });

  it("INV-LS-PURPOSE: purposes print exactly as the seed writes them", () => {
    expect(PURPOSES).toEqual(["Operation", "StateWrite", "MigrationHandoff"]);
  });

  it.each(PURPOSES)(
    "INV-LS-PURPOSE: a lease granted for %s keeps it over renewal, resume and revoke",
    (purpose) => {
      const cell = granted(purpose, 60);
      for (const command of [renew("a"), renew("a", { ttlMs: 60_000 }), revoke()]) {
        expect(leaseOf(cell.run(command, at(1))).purpose).toBe(purpose);
      }
    },
  );

  it("INV-LS-PURPOSE: asking again for another purpose, with proof of the lease, does not change it", () => {
    const cell = granted("Operation", 60);
    cell.run(acquire("a", { purpose: "StateWrite", provenTokenHash: cell.record!.tokenHash }), at(1));
    expect(cell.record).toMatchObject({ purpose: "Operation", generation: 1n });
  });

  it("INV-LS-PURPOSE: an unknown purpose is refused and the field is named", () => {
    const decided = new Cell().run(acquire("a", { purpose: "Lunch" as Purpose }), 1);
    expect(decided.decision).toMatchObject({ kind: "refused", field: "purpose" });
  });
});
