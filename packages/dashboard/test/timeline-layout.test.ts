// Where bars and marks of the time-line stand.
import type { Denial, Tenure } from "solehold/browser";
import { describe, expect, it } from "vitest";
import {
  layoutTimeline,
  type TimelineInput,
  type TimelineLayout,
} from "../src/live/lease/timeline-layout.ts";

const tenure = (holder: string, fromMs: number, toMs: number | null, waitedMs = 0): Tenure => ({
  ...{ holder, fence: String(fromMs), purpose: "", fromMs, toMs, end: toMs === null ? null : "released" },
  ...{ waitedMs, renewedAtMs: [], brokenAtMs: [] },
});
const denial = (holder: string, atMs: number, waitedMs = 0): Denial => ({
  ...{ holder, atMs, waitedMs, reason: "LEASE_HELD_BY_OTHER" },
});

function layoutOf(changed: Partial<TimelineInput>): TimelineLayout {
  return layoutTimeline({
    ...{ tenures: [tenure("a", 0, null)], denials: [], waiting: [], nowMs: 100_000, expiresAtMs: 110_000 },
    ...{ range: "all" as const, width: 1_000, clockShiftMs: 0, ...changed },
  });
}

function lanesOf(changed: Partial<TimelineInput>): Record<string, readonly string[]> {
  const { lanes } = layoutOf(changed);
  return Object.fromEntries(lanes.map(({ holder, spans }) => [holder, spans.map(({ end }) => end)]));
}

describe("the lanes beneath the time-line", () => {
  it("show a denial, and a wait that ended without a grant", () => {
    expect(lanesOf({ denials: [denial("b", 10_000), denial("b", 50_000, 20_000)] })).toEqual({
      b: ["denied", "denied"],
    });
  });

  it("show one wait as one bar, however often it was decided meanwhile", () => {
    const denials = [denial("b", 10_000), denial("b", 30_000, 20_000)];
    const granted = [tenure("a", 0, 40_000), tenure("b", 40_000, null, 30_000)];
    expect(lanesOf({ tenures: granted, denials })).toEqual({ b: ["granted"] });
    expect(lanesOf({ denials, waiting: [{ holder: "b", fromMs: 10_200 }] })).toEqual({ b: ["waiting"] });
    expect(lanesOf({ denials: [...denials, denial("b", 70_000, 60_000)] })).toEqual({ b: ["denied"] });
  });

  it("do not take the denial of one for the wait of another", () => {
    const waiting = [{ holder: "b", fromMs: 10_000 }];
    expect(lanesOf({ denials: [denial("c", 10_000)], waiting })).toEqual({ b: ["waiting"], c: ["denied"] });
  });
});

describe("the axis", () => {
  it("has its marks at round times of the reader's clock, whatever the store's clock says", () => {
    const { ticks, tickMs } = layoutOf({ clockShiftMs: 3_600_000 + 1_234 });
    expect(ticks.length).toBeGreaterThan(3);
    for (const { atMs } of ticks) expect((atMs + 3_600_000 + 1_234) % tickMs).toBe(0);
  });
});

describe("the range", () => {
  it("shows fewer tenures where there is less room, so that their holders can be read", () => {
    const tenures = Array.from({ length: 12 }, (_, index) =>
      tenure("a", index * 10_000, index * 10_000 + 5_000),
    );
    const shown = (width: number): number =>
      layoutOf({ tenures, nowMs: 121_000, expiresAtMs: null, range: "auto", width }).bars.length;
    expect([shown(1_300), shown(320)]).toEqual([8, 3]);
  });
});
