import { describe, expect, it } from "vitest";
import {
  campaign,
  expectedSituations,
  mergeSummaries,
  missedSituations,
  report,
  SEEDS_TO_REACH_ALL,
} from "../src/index.ts";

/** Larger runs are made by `solehold sim`; these are the sample of the test command. */
const FULL_SEEDS = 200;
const UNBOUNDED_SEEDS = 60;
const CORE_SEEDS = 3_000;

async function run(tier: "core" | "full", seeds: number, clocks: "bounded" | "unbounded") {
  const summary = await campaign({ tier, firstSeed: 1, seeds, clocks, determinismEvery: 20 });
  const [failure] = summary.failures;
  return { ...summary, told: failure === undefined ? "" : report(failure) };
}

describe("the real executor, service and client in a simulated world", () => {
  it("keeps every promise while clocks run within their bound, and reaches every situation", async () => {
    const { told, nondeterministic, sometimes } = await run("full", FULL_SEEDS, "bounded");
    expect(told).toBe("");
    expect(nondeterministic).toEqual([]);
    expect(expectedSituations("full").filter((situation) => sometimes[situation] === 0)).toEqual([]);
  }, 150_000);

  it("still never lets an older fence write after a newer one when clocks run wild", async () => {
    const { told, sometimes } = await run("full", UNBOUNDED_SEEDS, "unbounded");
    expect(told).toBe("");
    expect(sometimes["a zombie's write was refused by the guard"]).toBeGreaterThan(0);
  }, 90_000);
});

describe("the core in a synchronous world", () => {
  it("keeps every promise on thousands of seeds", async () => {
    const { told, sometimes } = await run("core", CORE_SEEDS, "bounded");
    expect(told).toBe("");
    expect(expectedSituations("core").filter((situation) => sometimes[situation] === 0)).toEqual([]);
  }, 60_000);
});

describe("ranges of seeds that were run apart", () => {
  it("are together what one run of all of them is", async () => {
    const range = (firstSeed: number, seeds: number) =>
      campaign({ tier: "core", firstSeed, seeds, determinismEvery: 0 });
    const parts = [await range(1, 100), await range(101, 150)];
    expect(mergeSummaries(parts)).toEqual(await range(1, 250));
  });
});

describe("a situation that was never reached", () => {
  const [first, ...others] = expectedSituations("full");
  const counts = { ...Object.fromEntries(others.map((situation) => [situation, 1])), [String(first)]: 0 };

  it("fails a run that was large enough to expect it", () => {
    expect(missedSituations("full", SEEDS_TO_REACH_ALL.full, counts)).toEqual([first]);
  });

  it("is only reported by a smaller run", () => {
    expect(missedSituations("full", SEEDS_TO_REACH_ALL.full - 1, counts)).toEqual([]);
  });
});
