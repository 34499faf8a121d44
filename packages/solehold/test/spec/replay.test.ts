import { plantedBug } from "@solehold/simulator";
import { beforeAll, describe, expect, it } from "vitest";
import { decide, type LeasePolicy } from "../../src/core/index.ts";
import { type CoreRules, CoreWorld, SHIPPED } from "./core-world.ts";
import { traces } from "./quint.ts";
import { type ModelState, statesOf } from "./trace.ts";

const TRACES = 40;
const STEPS = 60;

const withPolicy =
  (changed: Partial<LeasePolicy>): typeof decide =>
  (command, snapshot, now, policy) =>
    decide(command, snapshot, now, { ...policy, ...changed });

/** A lease counts as over so many ticks later than it is. */
const withLateEnd =
  (ticks: number): typeof decide =>
  (command, snapshot, now, policy) =>
    decide(command, snapshot, { ...now, earliestMs: now.earliestMs - ticks }, policy);

const planted = (name: string): typeof decide => plantedBug(name).mutations.decide?.(decide) ?? decide;

const MISTAKES: readonly (readonly [string, Partial<CoreRules>])[] = [
  ["grants the same fence again", { decide: planted("same-fence-on-regrant") }],
  ["releases for anybody", { decide: planted("release-by-key") }],
  ["renews what has expired", { decide: withPolicy({ renewExpired: "if-unclaimed" }) }],
  ["deletes on release", { decide: withPolicy({ release: "delete" }) }],
  ["frees a lease one tick late", { decide: withLateEnd(1) }],
  ["leaves no margin", { drift: { driftRatio: 0, tickMs: 0 } }],
];

describe("traces of the model, replayed by the shipped code", () => {
  let walks: readonly (readonly ModelState[])[] = [];

  beforeAll(async () => {
    walks = (await traces(TRACES, STEPS, 3)).map(statesOf);
  });

  function replay(rules: CoreRules): void {
    for (const walk of walks) {
      const world = new CoreWorld(rules);
      walk.forEach((state, index) => {
        const before = walk[index - 1];
        if (before === undefined) world.start(state);
        else world.step(before, state);
      });
    }
  }

  it("agree with it in every decision, record, belief and guarded write", () => {
    expect(walks).toHaveLength(TRACES);
    replay(SHIPPED);
  });

  it("contain every kind of step", () => {
    const kinds = new Set(walks.flatMap((walk) => walk.map(({ action }) => action)));
    const all = ["ask", "refuse", "arrive", "receive", "lose", "crash", "collect", "tick", "write", "reach"];
    expect([...kinds].sort()).toEqual([...all, "init"].sort());
  });

  it.each(MISTAKES)("disagree with a core that %s", (_mistake, changed) => {
    expect(() => replay({ ...SHIPPED, ...changed })).toThrow(/expected/);
  });
});
