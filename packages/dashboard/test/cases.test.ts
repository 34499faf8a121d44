// Every scenario and every rule of the gallery ends as its text says: with its bug, and with the shipped code.
import { EXPLORABLE_BUGS, PLANTED_BUGS, plantedBug, type Trace } from "@solehold/simulator";
import { describe, expect, it } from "vitest";
import type { Case, Ending } from "../src/playground/data/case.ts";
import { RULES, SCENARIOS } from "../src/playground/data/cases.ts";
import { EXPLORABLE } from "../src/playground/data/explorable.ts";
import { tenuresOf } from "../src/playground/picture/geometry.ts";
import { promiseOf } from "../src/playground/state/words.ts";
import { play } from "../src/playground/worker/play.ts";

const CASES = RULES.map((each): [string, Case] => [each.id, each]);

function endingOf({ violation, beliefs, writes }: Trace, said: Ending): Ending {
  const inOrder = [...beliefs].sort((a, b) => a.fromMs - b.fromMs).map(({ who }) => who);
  return {
    violation: violation?.oracle ?? null,
    holders: said.holders === null ? null : inOrder,
    refused: said.refused === null ? null : writes.some(({ accepted }) => !accepted),
  };
}

/** The trace of each case with its bug, played once for all tests that look at it. */
const played = new Map<string, Promise<Trace>>();

function withBug({ id, world, title, bug }: Case): Promise<Trace> {
  const trace = played.get(id) ?? play(world, title, bug);
  played.set(id, trace);
  return trace;
}

describe("every case of the playground", () => {
  it.each(CASES)("%s ends as its text says with the shipped code", async (_id, { world, title, shipped }) => {
    expect(endingOf(await play(world, title, null), shipped)).toEqual(shipped);
  });

  it.each(CASES)("%s shows its bug in the same world", async (_id, each) => {
    expect(plantedBug(each.bug).caughtBy).toContain(each.broken.violation);
    expect(endingOf(await withBug(each), each.broken)).toEqual(each.broken);
  });

  it.each(CASES)("%s is the same trace whenever it is played", async (_id, each) => {
    expect(await play(each.world, each.title, each.bug)).toEqual(await withBug(each));
  });
});

it("draws a record for as long as it was in force, also where its end is taken back", () => {
  const record = { key: "k", state: "held", holder: "A", fence: "1", successor: null } as const;
  const drawn = (...ends: readonly (readonly [atMs: number, endsMs: number])[]) =>
    tenuresOf(
      ends.map(([atMs, endsMs]) => ({ ...record, atMs, endsMs })),
      50,
    ).map(({ endsMs }) => endsMs);
  expect(drawn([0, 10], [5, 15])).toEqual([15]);
  expect(drawn([0, 20], [10, 12])).toEqual([12]);
  expect(drawn([0, 10], [12, 6])).toEqual([10]);
});

describe("the gallery", () => {
  it("has every planted bug that shows without servers, signatures and disks, once", () => {
    const shown = RULES.map(({ bug }) => bug).sort();
    const hidden = ["signatures-counted", "sync-tried-again"];
    const expected = PLANTED_BUGS.map(({ name }) => name).filter((name) => !hidden.includes(name));
    expect(shown).toEqual(expected.sort());
  });

  it("says in words which promise a mistake may break", () => {
    const oracles = new Set(PLANTED_BUGS.flatMap(({ caughtBy }) => caughtBy));
    expect([...oracles].filter((oracle) => promiseOf(oracle) === oracle)).toEqual([]);
  });

  it("offers the explorer for every bug that it can show", () => {
    const shown = new Set(RULES.map(({ bug }) => bug));
    expect([...EXPLORABLE].sort()).toEqual(
      Object.keys(EXPLORABLE_BUGS)
        .filter((bug) => shown.has(bug))
        .sort(),
    );
  });

  it("says in two sentences what a mistake is and what comes of it", () => {
    for (const { bugText, id } of RULES)
      expect([id, bugText.split(/[.!?](?:\s|$)/).length - 1]).toEqual([id, 2]);
  });

  it("has the scenarios of the first page", () => {
    const ids = [
      "frozen-store",
      "late-reply",
      "drifting-clock",
      "suspended-laptop",
      "lost-release",
      "zombie-writer",
    ];
    expect(SCENARIOS.map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
  });
});
