/** The matrix of docs/adapters.md: every entry of an adapter has its row, and the versions are those of the tests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "./pages.ts";

const json = (path: string) => JSON.parse(readFileSync(join(ROOT, path), "utf8"));

/** What is adapted, where its name is not that of the entry. */
const PACKAGES: { readonly [entry: string]: string } = {
  "adapters/nestjs": "@nestjs/core",
  "adapters/verrou": "@verrou/core",
  "adapters/web": "next",
  opentelemetry: "@opentelemetry/sdk-trace-base",
};

const rows = [
  ...readFileSync(join(ROOT, "docs/adapters.md"), "utf8").matchAll(
    /^\| .* \| `solehold\/([\w/-]+)` \| (.*?) \| /gm,
  ),
].map(([, entry = "", tested = ""]) => ({ entry, tested }));

it("has a row for every adapter", () => {
  const exports = Object.keys(json("packages/solehold/package.json").exports);
  const adapters = exports.filter((path) => path.startsWith("./adapters/")).map((path) => path.slice(2));
  expect(rows.map(({ entry }) => entry).sort()).toEqual([...adapters, "opentelemetry"].sort());
});

it("names the versions that the tests use", () => {
  const versions = {
    ...json("package.json").devDependencies,
    ...json("packages/solehold/package.json").devDependencies,
    ...json("packages/solehold/test/adapters/packages/package.json").dependencies,
  };
  for (const { entry, tested } of rows) {
    const name = PACKAGES[entry] ?? entry.replace("adapters/", "");
    expect([entry, tested]).toEqual([entry, /^\d+\.\d+/.exec(versions[name])?.[0]]);
  }
});
