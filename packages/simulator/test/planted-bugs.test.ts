// The check of the checks: a mistake that is planted must be found, by an oracle that is right to object.
import { describe, expect, it } from "vitest";
import { PLANTED_BUGS, searchBug } from "../src/index.ts";

describe("planted bugs", () => {
  it("are at least twenty, each with a name of its own", () => {
    expect(PLANTED_BUGS.length).toBeGreaterThanOrEqual(20);
    expect(new Set(PLANTED_BUGS.map(({ name }) => name)).size).toBe(PLANTED_BUGS.length);
  });

  it.each(PLANTED_BUGS.map((bug) => [bug.name, bug.mistake, bug] as const))(
    "are found: %s (%s)",
    async (_name, _mistake, bug) => {
      const { oracle, seedsTried } = await searchBug(bug);
      expect(bug.caughtBy).toContain(oracle);
      expect(seedsTried).toBeLessThanOrEqual(bug.withinSeeds);
    },
  );
});
