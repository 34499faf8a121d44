/**
 * The matrix of docs/adapters.md, and the short one in the README: every entry of an adapter has its row, the versions
 * are those of the tests, and none of what is adapted is a dependency of the library.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "./pages.ts";

const text = (path: string) => readFileSync(join(ROOT, path), "utf8");
const json = (path: string) => JSON.parse(text(path));

/** What is adapted, where its name is not that of the entry. */
const PACKAGES: { readonly [entry: string]: string } = {
  "adapters/nestjs": "@nestjs/core",
  "adapters/verrou": "@verrou/core",
  "adapters/web": "next",
  opentelemetry: "@opentelemetry/sdk-trace-base",
};

const packageOf = (entry: string): string => PACKAGES[entry] ?? entry.replace("adapters/", "");
const rows = [
  ...text("docs/adapters.md").matchAll(/^\| \[.*\]\((\S+)\).* \| `solehold\/([\w/-]+)` \| (.*?) \| /gm),
].map(([, section = "", entry = "", tested = ""]) => ({ section, entry, tested }));

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
    expect([entry, tested]).toEqual([entry, /^\d+\.\d+/.exec(versions[packageOf(entry)])?.[0]]);
  }
});

it("has a row in the README for every adapter, agents and Python", () => {
  const sections = rows.map(({ section }) => (section.startsWith("#") ? `adapters.md${section}` : section));
  const readme = text("README.md");
  const missing = [...sections, "mcp.md", "python.md"].filter((path) => !readme.includes(`](docs/${path})`));
  expect(missing).toEqual([]);
});

it("adds no dependency to the library: it has none, and no adapter imports what it adapts", () => {
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = json(
    "packages/solehold/package.json",
  );
  expect([dependencies, optionalDependencies]).toEqual([undefined, undefined]);
  expect(Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional)).toEqual([]);
  const adapted = rows.map(({ entry }) => packageOf(entry));
  expect(adapted.filter((name) => name in peerDependencies)).toEqual([]);
  const folder = "packages/solehold/src/adapters";
  const foreign = readdirSync(join(ROOT, folder)).flatMap((file) =>
    [...text(join(folder, file)).matchAll(/^(?:import|export) (?:[^;]*? from )?"([^"]+)";/gm)].flatMap(
      ([, path = ""]) => (/^(\.|node:)/.test(path) ? [] : [`${file}: ${path}`]),
    ),
  );
  expect(foreign).toEqual([]);
});
