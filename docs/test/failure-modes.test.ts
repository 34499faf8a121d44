/** The table of failure modes speaks of the versions that are pinned, and Solehold meets every bar in it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { FAULTS } from "../../failure-modes/faults.mjs";
import { ROOT } from "./pages.ts";

const page = readFileSync(join(ROOT, "docs/failure-modes.md"), "utf8");
const cellsOf = (line: string): readonly string[] =>
  line.split(" | ").map((cell) => cell.replaceAll(/^\| | \|$/g, ""));
const [head = [], , ...rows] = page
  .slice(page.indexOf("| fault |"), page.indexOf("## The faults"))
  .trim()
  .split("\n")
  .map(cellsOf);

it("has a row for every fault", () => {
  expect(rows.map(([fault]) => fault)).toEqual(Object.keys(FAULTS));
});

it("says of every fault what it is, and what its bar is, as the fault itself does", () => {
  for (const [name, { what, good }] of Object.entries(FAULTS))
    expect(page).toContain(`| ${name} | ${what} | ${good} |`);
});

it("shows that Solehold meets every bar", () => {
  const column = head.indexOf("`solehold`");
  expect(rows.filter((row) => !row[column]?.startsWith("✔"))).toEqual([]);
});

it("says which source it speaks of", () => {
  expect(page).toMatch(/, at commit `[0-9a-f]{40}`\./);
  expect(page).toMatch(/`[0-9a-f]{64}`/);
});

it("was made with the versions of the benchmarks' packages", () => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, "bench/package.json"), "utf8"));
  const peers = head
    .slice(1)
    .map((name) => name.replaceAll("`", ""))
    .filter((name) => name !== "solehold");
  expect(peers).toHaveLength(6);
  for (const peer of peers) expect(page).toContain(`| \`${peer}\` | ${dependencies[peer]} |`);
});
