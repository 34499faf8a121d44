/** The committed ledger is green, its page is made from it, and a ledger that shows too little is red. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { EXPLORABLE_BUGS, PLANTED_BUGS, SERVER_BUGS, SITUATIONS } from "@solehold/simulator";
import { describe, expect, it } from "vitest";
import { type Ledger, pageOf, problemsOf } from "../../scripts/ledger/page.mjs";
import { ENGINES } from "../../soak/engines.mjs";
import { ROOT } from "./pages.ts";

const ledger = JSON.parse(readFileSync(join(ROOT, "artifacts/ledger.json"), "utf8")) as Ledger;

describe("the ledger of proof", () => {
  it("is green: every part ran, no promise was broken, every canary was found", () => {
    expect(problemsOf(ledger)).toEqual([]);
  });

  it("says which source it speaks of", () => {
    expect(ledger.commit).toMatch(/^[0-9a-f]{40}$/);
    expect(ledger.sources.sha256).toMatch(/^[0-9a-f]{64}$/);
  });

  it("speaks of every planted bug, situation, mistake of the model and engine that there is today", () => {
    const names = (canaries: readonly { readonly bug: string }[] | null) =>
      canaries?.map(({ bug }) => bug).sort();
    const { mistakes } = JSON.parse(readFileSync(join(ROOT, "spec/mistakes.json"), "utf8")) as {
      readonly mistakes: readonly { readonly main: string }[];
    };
    expect(names(ledger.bugs)).toEqual([...PLANTED_BUGS, ...SERVER_BUGS].map(({ name }) => name).sort());
    expect(names(ledger.explorerBugs)).toEqual(Object.keys(EXPLORABLE_BUGS).sort());
    expect(names(ledger.model.bugs)).toEqual(mistakes.map(({ main }) => main).sort());
    expect(ledger.soaks.map(({ engine }) => engine)).toEqual(Object.keys(ENGINES));
    const reached = Object.keys(ledger.simulations[0]?.sometimes ?? {});
    expect(SITUATIONS.filter((situation) => !reached.includes(situation))).toEqual([]);
  });

  it("is what the page shows", () => {
    expect(readFileSync(join(ROOT, "docs/ledger.md"), "utf8")).toBe(pageOf(ledger));
  });

  it.each([
    ["a canary was not found", { bugs: [{ bug: "b", oracle: null, seedsTried: 9 }] }, "b was NOT found"],
    [
      "the explorer missed one",
      { explorerBugs: [{ bug: "b", oracle: null, world: "w", depth: 1 }] },
      "b was",
    ],
    [
      "a mistake in the model was missed",
      { model: { ...ledger.model, bugs: [{ bug: "b", oracle: null }] } },
      "b",
    ],
    ["a soak did not object", { soakBugs: [{ bug: "guard", oracle: null }] }, "guard was NOT found"],
    ["no bug was planted", { bugs: [] }, "planted bugs: nothing ran"],
    ["the explorer did not run", { explorer: null }, "explorer: nothing ran"],
    ["the model did not run", { model: { ...ledger.model, traces: 0 } }, "model: nothing ran"],
    ["no engine was soaked", { soaks: [] }, "soaks: nothing ran"],
    ["nobody wrote in a soak", { soaks: [{ ...ledger.soaks[0]!, accepted: 0 }] }, "nothing ran"],
    [
      "a seed broke a promise",
      { simulations: [{ ...ledger.simulations[0]!, violations: 1 }] },
      "1 violations",
    ],
    ["no seed ran", { simulations: [{ ...ledger.simulations[0]!, seeds: 0 }] }, "nothing ran"],
  ])("is red when %s", (_, change, problem) => {
    const red = { ...ledger, ...change };
    expect(problemsOf(red).join("\n")).toContain(problem);
    expect(pageOf(red)).toContain("**RED**");
  });
});
