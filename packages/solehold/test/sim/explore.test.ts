import { describe, expect, it } from "vitest";
import { BUG_CHOICES, WORLD_CHOICES } from "../../../cli/src/commands/explore.ts";
import { EXPLORABLE_BUGS, EXPLORE_WORLDS, explore } from "../../src/sim/index.ts";

describe("the explorer", () => {
  it("finds no broken promise in any state of a world with clocks that run slow and fast", () => {
    const { states, violation } = explore({ ...EXPLORE_WORLDS.clocks, ttlTicks: 3, late: 0 });
    expect(violation).toBeNull();
    expect(states).toBeGreaterThan(10_000);
  });

  it("finds no broken promise among requests that come late and clients that doubt the time", () => {
    const { states, violation } = explore({ ...EXPLORE_WORLDS.doubt, ttlTicks: 2 });
    expect(violation).toBeNull();
    expect(states).toBeGreaterThan(10_000);
  });

  it.each(["handoff", "guard", "keys"] as const)(
    "finds no broken promise in a smaller world of %s",
    (name) => {
      const { violation } = explore({ ...EXPLORE_WORLDS[name], ttlTicks: 2, lag: 0, late: 0 });
      expect(violation).toBeNull();
    },
  );

  it.each(Object.entries(EXPLORABLE_BUGS))("shows the shortest way to %s", (_name, bug) => {
    const { violation, depth } = explore(EXPLORE_WORLDS[bug.world], { rules: bug.rules });
    expect(bug.breaks).toContain(violation?.oracle);
    expect(violation?.trace).toHaveLength(depth);
  });

  it("is offered on the command line with every bug and every world that it knows", () => {
    expect([...BUG_CHOICES].sort()).toEqual(Object.keys(EXPLORABLE_BUGS).sort());
    expect([...WORLD_CHOICES].sort()).toEqual(Object.keys(EXPLORE_WORLDS).sort());
  });
});
