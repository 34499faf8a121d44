import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stopPlan } from "../../src/run/plan.ts";

describe("the plan for stopping a command", () => {
  it("refuses a ttl that leaves no time to stop, and names the fix", () => {
    expect(() => stopPlan({ ttlMs: 999, graceMs: null, onLoss: "term" })).toThrow(
      "--ttl must be at least 1.0s",
    );
    expect(() => stopPlan({ ttlMs: 999, graceMs: null, onLoss: "kill" })).toThrow("--ttl must be at least");
    expect(stopPlan({ ttlMs: 999, graceMs: null, onLoss: "ignore" }).onLoss).toBe("ignore");
  });

  it("refuses a grace above a third of the ttl, and names a ttl that would do", () => {
    expect(() => stopPlan({ ttlMs: 3_000, graceMs: 1_001, onLoss: "term" })).toThrow(
      "--grace must be at most a third of --ttl (1000ms), got 1001ms: use --ttl 3003ms or a shorter grace",
    );
    expect(stopPlan({ ttlMs: 3_003, graceMs: 1_001, onLoss: "term" }).graceMs).toBe(1_001);
  });

  it("gives SIGTERM no time where only SIGKILL is wanted", () => {
    expect(stopPlan({ ttlMs: 30_000, graceMs: 5_000, onLoss: "kill" }).graceMs).toBe(0);
  });

  it("leaves time for a renewal that is late and is tried once more, whatever the ttl", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_000, max: 3_600_000 }), (ttlMs) => {
        const { graceMs, marginMs } = stopPlan({ ttlMs, graceMs: null, onLoss: "term" });
        const believedMs = ttlMs - Math.ceil(ttlMs * 0.01) - 2;
        // The latest renewal goes out at 0.4 ttl and is given up after a sixth; a retry follows within 0.12.
        expect(believedMs - marginMs - graceMs).toBeGreaterThanOrEqual(ttlMs * (0.4 + 1 / 6 + 0.12));
        expect(marginMs).toBeGreaterThanOrEqual(100);
        expect(graceMs).toBeLessThanOrEqual(5_000);
      }),
    );
  });
});
