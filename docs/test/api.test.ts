/** The page of exported names has every value that an entry of the library really exports, and nothing that it does not. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./pages.ts";

const page = readFileSync(join(ROOT, "docs/reference/api.md"), "utf8");
const LIBRARY = join(ROOT, "packages/solehold");
const { exports } = JSON.parse(readFileSync(join(LIBRARY, "package.json"), "utf8")) as {
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
};
const entries = Object.entries(exports).filter(([entry]) => entry !== "./internal");

/** Of one entry: the names of values that its section declares, or says it has in common with another entry. */
function valuesOf(entry: string): readonly string[] {
  const title = entry === "." ? "solehold" : `solehold${entry.slice(1)}`;
  const [, section = ""] = new RegExp(`^## ${title}$([\\s\\S]*?)(?=^## |(?![\\s\\S]))`, "m").exec(page) ?? [];
  const declared = section.matchAll(/^(?:abstract )?(?:class|function|const|enum) (\w+)|^(\w+) = \w+: /gm);
  const shared = section.matchAll(/`(\w+)` \(/g);
  return [...declared, ...shared].map(([, first, second]) => first ?? second ?? "");
}

describe("the page of exported names", () => {
  it.each(entries)("has every value of %s", async (entry, { default: built }) => {
    // A default export stands beside the same value by its name.
    const real = Object.keys(await import(join(LIBRARY, built))).filter((name) => name !== "default");
    const shown = valuesOf(entry);
    expect(real.filter((name) => !shown.includes(name))).toEqual([]);
  });

  it("has no entry that is gone", () => {
    const titles = [...page.matchAll(/^## (solehold\S*)$/gm)].map(([, title]) => title);
    expect(titles).toEqual(
      entries.map(([entry]) => (entry === "." ? "solehold" : `solehold${entry.slice(1)}`)),
    );
  });
});
