/** Generations from the store's time: what keeps fences growing when the last record is not there to count from. */
import { describe, expect, it } from "vitest";
import { DEFAULT_POLICY, type StoreInstant } from "../../src/core/index.ts";
import { acquire, Cell, leaseOf, release, renew } from "./cell.ts";

function grantAt(cell: Cell, now: number | StoreInstant): bigint {
  return leaseOf(cell.run(acquire("a"), now)).generation;
}

describe("a generation by the clock", () => {
  it("is the store's time in microseconds", () => {
    expect(grantAt(new Cell(DEFAULT_POLICY), 1_700_000_000_000)).toBe(1_700_000_000_000_000n);
  });

  it("is that of the latest possible time, which is what the record is stamped with", () => {
    const now = { earliestMs: 900, latestMs: 1_100, stampMs: 1_100 };
    expect(grantAt(new Cell(DEFAULT_POLICY), now)).toBe(1_100_000n);
  });

  it("is one more than the last where time has not moved, and does not change with a renewal", () => {
    const cell = new Cell(DEFAULT_POLICY);
    expect(grantAt(cell, 1_000)).toBe(1_000_000n);
    cell.run(renew("a"), 1_000);
    expect(cell.record?.generation).toBe(1_000_000n);
    cell.run(release("a"), 1_000);
    expect(grantAt(cell, 1_000)).toBe(1_000_001n);
  });

  it("goes on from the record when the clock was set back", () => {
    const cell = new Cell(DEFAULT_POLICY);
    grantAt(cell, 50_000);
    cell.run(release("a"), 50_000);
    expect(grantAt(cell, 1_000)).toBe(50_000_001n);
  });

  it("is above that of a record which is gone: collected, deleted by hand, lost with a failover", () => {
    const cell = new Cell(DEFAULT_POLICY);
    const before = grantAt(cell, 1_000);
    cell.record = null;
    expect(grantAt(cell, 1_001)).toBeGreaterThan(before);
  });

  it("is above all that came after a record which an old backup brought back", () => {
    const cell = new Cell(DEFAULT_POLICY);
    grantAt(cell, 1_000);
    cell.run(release("a"), 1_000);
    const backup = cell.record;
    const lost = grantAt(cell, 5_000);
    cell.record = backup;
    expect(grantAt(cell, 6_000)).toBeGreaterThan(lost);
  });
});
