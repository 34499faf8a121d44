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

async function run(seeds: number, clocks: "bounded" | "unbounded") {
  const summary = await campaign({ firstSeed: 1, seeds, clocks, determinismEvery: 20 });
  const [failure] = summary.failures;
  return { ...summary, failed: failure === undefined ? "" : report(failure) };
}

describe("the real executor, service and client in a simulated world", () => {
  it("keeps every promise while clocks run within their bound, and reaches every situation", async () => {
    const { failed, nondeterministic, sometimes } = await run(FULL_SEEDS, "bounded");
    expect(failed).toBe("");
    expect(nondeterministic).toEqual([]);
    expect(expectedSituations().filter((situation) => sometimes[situation] === 0)).toEqual([]);
  });

  it("still never lets an older fence write after a newer one when clocks run wild", async () => {
    const { failed, sometimes } = await run(UNBOUNDED_SEEDS, "unbounded");
    expect(failed).toBe("");
    expect(sometimes["a zombie's write was refused by the guard"]).toBeGreaterThan(0);
  });
});

describe("ranges of seeds that were run apart", () => {
  it("are together what one run of all of them is", async () => {
    const range = (firstSeed: number, seeds: number) => campaign({ firstSeed, seeds, determinismEvery: 0 });
    const parts = [await range(1, 3), await range(4, 3)];
    expect(mergeSummaries(parts)).toEqual(await range(1, 6));
  });
});

describe("a situation that was never reached", () => {
  const [first, ...others] = expectedSituations();
  const counts = { ...Object.fromEntries(others.map((situation) => [situation, 1])), [String(first)]: 0 };

  it("fails a run that was large enough to expect it", () => {
    expect(missedSituations(SEEDS_TO_REACH_ALL, counts)).toEqual([first]);
  });

  it("is only reported by a smaller run", () => {
    expect(missedSituations(SEEDS_TO_REACH_ALL - 1, counts)).toEqual([]);
  });
});
