import { describe, expect, it } from "vitest";
import { BUG_CHOICES } from "../../../cli/src/commands/explore.ts";
import { DEFAULT_LIMITS, EXPLORABLE_BUGS, explore } from "../../src/sim/index.ts";

describe("the explorer", () => {
  it("finds no broken promise in any interleaving of a small world", () => {
    const { states, violation } = explore(
      { ...DEFAULT_LIMITS, ticks: 3, ttlTicks: 2, lag: 0 },
      { drift: { driftRatio: 0, tickMs: 1 } },
    );
    expect(violation).toBeNull();
    expect(states).toBeGreaterThan(10_000);
  }, 90_000);

  it.each(Object.entries(EXPLORABLE_BUGS))(
    "shows the shortest way to %s",
    (_name, { breaks, rules }) => {
      const { violation, depth } = explore({ ...DEFAULT_LIMITS, ticks: 5, ttlTicks: 4 }, rules);
      expect(breaks).toContain(violation?.oracle);
      expect(violation?.trace).toHaveLength(depth);
    },
    60_000,
  );

  it("is offered on the command line with every bug that it knows", () => {
    expect([...BUG_CHOICES].sort()).toEqual(Object.keys(EXPLORABLE_BUGS).sort());
  });
});
