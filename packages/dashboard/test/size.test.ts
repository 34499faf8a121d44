// What a browser loads for the live views is small.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";

const BUILT = join(import.meta.dirname, "../dist");
const MOST_BYTES = 90_000;

/** The page and all that it names, and what that names in turn. */
function filesOf(name: string, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(name)) return found;
  found.add(name);
  const text = readFileSync(join(BUILT, name), "utf8");
  for (const [, file = ""] of text.matchAll(/["'(./]((?:[\w-]+\/)?[\w-]+-[\w-]{8}\.(?:js|css))["')]/g))
    filesOf(file.startsWith("assets/") ? file : `assets/${file}`, found);
  return found;
}

it("the live views are under 90 kB gzipped, and have nothing of the playground in them", () => {
  const files = [...filesOf("index.html")];
  expect(files.length).toBeGreaterThan(2);
  expect(files.filter((file) => /playground|worker/.test(file))).toEqual([]);
  const bytes = files.reduce((total, file) => total + gzipSync(readFileSync(join(BUILT, file))).length, 0);
  expect(bytes).toBeLessThan(MOST_BYTES);
});
