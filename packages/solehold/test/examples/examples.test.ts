// The examples are run as a reader would run them.
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";

const EXAMPLES = join(import.meta.dirname, "../../../../examples");

async function run(name: string, ...args: readonly string[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "solehold-example-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const argv = [join(EXAMPLES, name), join(folder, "data"), ...args];
  return (await promisify(execFile)(process.execPath, argv)).stdout;
}

/** What an example says at its head that it prints; null where that differs from run to run. */
function promisedBy(name: string): string | null {
  const [, shown] =
    /^\/\/ Prints:\n((?:\/\/ {3}.*\n)+)/m.exec(readFileSync(join(EXAMPLES, name), "utf8")) ?? [];
  return shown?.replaceAll(/^\/\/ {3}/gm, "") ?? null;
}

const examples = readdirSync(EXAMPLES).filter((name) => name.endsWith(".mjs"));
const fixed = examples.filter((name) => promisedBy(name) !== null);

it.each(fixed)("%s prints what it says at its head", async (name) => {
  expect(await run(name)).toBe(promisedBy(name));
});

it("are all run", () => {
  expect(examples.filter((name) => !fixed.includes(name))).toEqual(["leader.mjs", "one-at-a-time.mjs"]);
});

it("one-at-a-time does its work under a fence", async () => {
  expect(await run("one-at-a-time.mjs")).toMatch(/with fence (\d+)\nwritten with fence \1\n$/);
});

it("leader leads term after term with growing fences", async () => {
  const [first = "", second = ""] = (await run("leader.mjs", "2")).match(/\d+/g) ?? [];
  expect(BigInt(second)).toBeGreaterThan(BigInt(first));
});

it("find-the-bug finds a deposed leader that acts, and none once the worker asks its lease", async () => {
  const [, acted = "", newest = ""] =
    /^seed \d+, \d+ ms: worker [ab] acted under term (\d+) after term (\d+)\n$/.exec(
      await run("simulated-worker/find-the-bug.mjs"),
    ) ?? [];
  expect(BigInt(newest)).toBeGreaterThan(BigInt(acted));
  expect(await run("simulated-worker/find-the-bug.mjs", "fixed")).toBe(
    "no seed showed a deposed leader that acts\n",
  );
});
