/** What a holder may believe, on clocks that drift, stop and are set. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ClockReading,
  DEFAULT_DRIFT,
  isStillValid,
  JITTER_RATIO,
  laterValidity,
  marginMs,
  remainingValidityMs,
  renewalTimingProblem,
  validityFrom,
} from "../../src/core/index.ts";

const HOUR = 3_600_000;
const START: ClockReading = { monotonicMs: 50_000, wallMs: 1_700_000_000_000 };

function later(reading: ClockReading, monotonicMs: number, wallMs = monotonicMs): ClockReading {
  return { monotonicMs: reading.monotonicMs + monotonicMs, wallMs: reading.wallMs + wallMs };
}

/** One request on two clocks that run at different rates. Real time is in milliseconds from its sending. */
const worlds = fc.record({
  ttlMs: fc.integer({ min: 1, max: 600_000 }),
  driftRatio: fc.constantFrom(0, 0.0001, 0.001, 0.01, 0.05, 0.1, 0.3, 0.49),
  tickMs: fc.constantFrom(1, 2, 5),
  holderRate: fc.double({ min: 0.5, max: 2, noNaN: true }),
  /** Where the store's rate lies between as slow and as fast as the bound allows against the holder's. */
  skew: fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true })),
  applyDelayMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1_000_000, noNaN: true })),
  storeStartMs: fc.double({ min: 0, max: 1e12, noNaN: true }),
  probe: fc.double({ min: 0, max: 1.5, noNaN: true }),
});

describe("a belief", () => {
  it("ClockSkewSafety: never outlives the record while the rates stay within the drift bound", () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const { ttlMs, driftRatio, tickMs, holderRate, skew } = world;
        const slowest = 1 / (1 + driftRatio);
        const storeRate = holderRate * (slowest + skew * (1 + driftRatio - slowest));
        const storeAt = (realMs: number): number => Math.floor(world.storeStartMs + realMs * storeRate);
        const holderAt = (realMs: number): ClockReading => later(START, realMs * holderRate);
        const validity = validityFrom(holderAt(0), ttlMs, { driftRatio, tickMs });
        const expiresAtMs = storeAt(world.applyDelayMs) + ttlMs;
        const believedForMs = Math.max(0, ttlMs - marginMs(ttlMs, { driftRatio, tickMs })) / holderRate;
        for (const realMs of [0, believedForMs * world.probe, believedForMs * (1 - 1e-9), believedForMs]) {
          if (!isStillValid(validity, holderAt(realMs))) continue;
          expect(storeAt(realMs)).toBeLessThan(expiresAtMs);
        }
      }),
      { numRuns: 5_000 },
    );
  });

  it("ends before the record of a store that runs faster by the whole bound, and not much earlier", () => {
    const drift = { driftRatio: 0.1, tickMs: 1 };
    const validity = validityFrom(START, 10_000, drift);
    expect(isStillValid(validity, later(START, 8_998))).toBe(true);
    expect(isStillValid(validity, later(START, 8_999))).toBe(false);
    expect(8_999 * 1.1).toBeLessThan(10_000);
  });

  it("counts from before the request was sent, not from the reply", () => {
    const validity = validityFrom(START, 10_000, DEFAULT_DRIFT);
    const reply = later(START, 9_000);
    expect(remainingValidityMs(validity, reply)).toBe(10_000 - 102 - 9_000);
  });

  it("has a margin of drift times ttl, rounded up, and a tick", () => {
    expect(marginMs(10_000, { driftRatio: 0.01, tickMs: 2 })).toBe(102);
    expect(marginMs(1, { driftRatio: 0.01, tickMs: 2 })).toBe(3);
    expect(marginMs(10_000, { driftRatio: 0, tickMs: 1 })).toBe(1);
  });

  it.each([
    [-1, true],
    [0, false],
    [1, false],
  ])("is half-open: %i ms from its end it is valid: %s", (offset, valid) => {
    const validity = validityFrom(START, 10_000, DEFAULT_DRIFT);
    const reading = later(START, 10_000 - 102 + offset);
    expect(isStillValid(validity, reading)).toBe(valid);
    expect(remainingValidityMs(validity, reading)).toBe(valid ? -offset : 0);
  });

  it.each([0, 1, 3, -5, Number.NaN, Number.POSITIVE_INFINITY])(
    "in a ttl of %s, which no margin fits into, is over at once",
    (ttlMs) => {
      expect(isStillValid(validityFrom(START, ttlMs, DEFAULT_DRIFT), START)).toBe(false);
    },
  );
});

describe("two clocks, and either may say that it is over", () => {
  const validity = validityFrom(START, 10_000, DEFAULT_DRIFT);

  it("a suspend stops the monotonic clock: the wall clock ends the belief", () => {
    expect(isStillValid(validity, later(START, 5, 9_897))).toBe(true);
    expect(isStillValid(validity, later(START, 5, 9_898))).toBe(false);
    expect(remainingValidityMs(validity, later(START, 0, HOUR))).toBe(0);
  });

  it("a wall clock that is set back never extends: the monotonic clock ends the belief", () => {
    expect(isStillValid(validity, later(START, 9_897, 9_897 - HOUR))).toBe(true);
    expect(isStillValid(validity, later(START, 9_898, 9_898 - HOUR))).toBe(false);
  });

  it("a wall clock that is set forward only shortens", () => {
    expect(isStillValid(validity, later(START, 1, 1 + HOUR))).toBe(false);
  });

  it("what remains is what the stricter clock says, and never negative", () => {
    expect(remainingValidityMs(validity, later(START, 1_000, 5_000))).toBe(4_898);
    expect(remainingValidityMs(validity, later(START, 5_000, 1_000))).toBe(4_898);
    expect(remainingValidityMs(validity, later(START, HOUR))).toBe(0);
  });

  it("remaining and valid agree on every reading", () => {
    const offsets = fc.integer({ min: -20_000, max: 20_000 });
    fc.assert(
      fc.property(offsets, offsets, (monotonicMs, wallMs) => {
        const reading = later(START, monotonicMs, wallMs);
        expect(remainingValidityMs(validity, reading) > 0).toBe(isStillValid(validity, reading));
      }),
    );
  });

  it("of two beliefs in the same grant the later one counts", () => {
    const renewed = validityFrom(later(START, 1_000), 10_000, DEFAULT_DRIFT);
    const shorter = validityFrom(later(START, 1_000), 1_000, DEFAULT_DRIFT);
    expect(laterValidity(validity, renewed)).toBe(renewed);
    expect(laterValidity(renewed, validity)).toBe(renewed);
    expect(laterValidity(validity, shorter)).toBe(validity);
  });
});

describe("renewal timing", () => {
  const drift = { driftRatio: 0.01, tickMs: 2 };

  it("of a third of the ttl with quick retries is fine", () => {
    const timing = { ttlMs: 30_000, renewEveryMs: 10_000, retryEveryMs: 2_000 };
    expect(renewalTimingProblem(timing, drift)).toBeNull();
  });

  it("must leave room for two retries within what can be believed", () => {
    const ttlMs = 10_000;
    const believedMs = ttlMs - marginMs(ttlMs, drift);
    const retryEveryMs = 1_000;
    const limitMs = believedMs / (1 + JITTER_RATIO) - 2 * retryEveryMs;
    const problem = (renewEveryMs: number): string | null =>
      renewalTimingProblem({ ttlMs, renewEveryMs, retryEveryMs }, drift);
    expect(problem(limitMs - 1)).toBeNull();
    expect(problem(limitMs + 1)).toMatch(
      /leaves no room for two retries .*: renew earlier or use a longer ttl/,
    );
  });

  it("needs a ttl that is longer than its margin", () => {
    const timing = (ttlMs: number) => ({ ttlMs, renewEveryMs: 1, retryEveryMs: 1 });
    expect(renewalTimingProblem(timing(3), drift)).toMatch(/not longer than its safety margin of 3 ms/);
    expect(renewalTimingProblem(timing(4), drift)).toMatch(/no room for two retries/);
    expect(renewalTimingProblem(timing(100), drift)).toBeNull();
  });

  it.each(["ttlMs", "renewEveryMs", "retryEveryMs"])(
    "with a %s that is no positive number is a problem",
    (field) => {
      for (const value of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
        const timing = { ttlMs: 30_000, renewEveryMs: 10_000, retryEveryMs: 2_000, [field]: value };
        expect(renewalTimingProblem(timing, drift), String(value)).toBeTypeOf("string");
      }
    },
  );

  it.each([
    [{ driftRatio: -0.1, tickMs: 2 }, /driftRatio must be from 0 to below 0.5, got -0.1/],
    [{ driftRatio: 0.5, tickMs: 2 }, /driftRatio/],
    [{ driftRatio: Number.NaN, tickMs: 2 }, /driftRatio/],
    [{ driftRatio: 0.1, tickMs: 0 }, /tickMs must be at least 1, got 0/],
    [{ driftRatio: 0.1, tickMs: Number.NaN }, /tickMs/],
  ])("refuses a drift bound of %j", (bound, message) => {
    expect(renewalTimingProblem({ ttlMs: 30_000, renewEveryMs: 1_000, retryEveryMs: 100 }, bound)).toMatch(
      message,
    );
  });
});
