// Every failure that was found and kept is played for ever: with its bug it fails as it did, without it all is well.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { plantedBug, type RegressionCase, replay, runFull, searchBug, shrink } from "../src/index.ts";

const FOLDER = join(import.meta.dirname, "../../../regressions");
const CASES = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".json"))
  .map((name): [string, RegressionCase] => [name, JSON.parse(readFileSync(join(FOLDER, name), "utf8"))])
  // Those through servers are played where the server is.
  .filter(([, kept]) => kept.entry !== "server");

describe("kept failures", () => {
  it.each(CASES)("%s fails with its bug and not without", async (_name, kept) => {
    if (kept.bug !== null) {
      const bug = plantedBug(kept.bug);
      const { violation } = await replay(kept, "with");
      // The code may have moved on since: then the bug shows a few seeds later.
      expect(bug.caughtBy).toContain(
        violation?.oracle ?? (await searchBug(bug, undefined, kept.seed)).oracle,
      );
    }
    expect((await replay(kept, "without")).violation).toBeNull();
  });
});

describe("shrinking", () => {
  it("leaves only what is needed for the failure, and the smaller case fails alike", async () => {
    const { mutations, faults } = plantedBug("held-as-boolean");
    const options = { seed: 6, mutations, ...(faults === undefined ? {} : { faults }) };
    const first = await runFull(options);
    const { needed, result } = await shrink(options);
    expect(needed.length).toBeLessThan(first.fired.length / 2);
    expect(result.violation?.oracle).toBe(first.violation?.oracle);
    expect(result.timeline.length).toBeGreaterThan(0);
  });
});
