import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { quint, simulate } from "./quint.ts";

/** Situations that must be reached; and each mistake with the invariant that it breaks and a seed that gets there soon. */
const { witnesses: WITNESSES, mistakes: MISTAKES } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../../spec/mistakes.json"), "utf8"),
) as {
  readonly witnesses: readonly string[];
  readonly mistakes: readonly { readonly main: string; readonly invariant: string; readonly seed: number }[];
};

describe("the model", () => {
  it("is well typed, with and without mistakes", async () => {
    expect(await quint("typecheck", "mistakes.qnt")).toEqual({ code: 0, output: "" });
  });

  it("keeps all its invariants, and reaches the situations in which they say something", async () => {
    const { code, output } = await simulate("lease.qnt", {
      main: "shipped",
      invariant: "safe",
      samples: 200,
      steps: 60,
      seed: 3,
      witnesses: WITNESSES,
    });
    expect(output).toContain("No violation found");
    expect(code).toBe(0);
    const reached = [...output.matchAll(/^(\w+) was witnessed in (\d+) trace/gm)]
      .filter(([, , count]) => Number(count) > 0)
      .map(([, name]) => name);
    expect(reached).toEqual(WITNESSES);
  });

  // One after the other: each keeps a core busy, and other files need theirs.
  it.each(MISTAKES)("with the mistake $main breaks $invariant", async ({ main, invariant, seed }) => {
    const run = await simulate("mistakes.qnt", { main, invariant, samples: 1_000, steps: 60, seed });
    expect(run.output).toContain("[violation] Found an issue");
    expect(run.code).toBe(1);
  });
});
