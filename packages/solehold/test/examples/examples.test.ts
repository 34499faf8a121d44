// The examples are run as a reader would run them.
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { engineRecord } from "../engines/index.ts";

const EXAMPLES = join(import.meta.dirname, "../../../../examples");

/** One for all of them: a reader takes the same for each. */
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "solehold-example-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (name: string, ...args: readonly string[]) => runOn(join(folder, "data"), name, ...args);

async function runOn(place: string, name: string, ...args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, [join(EXAMPLES, name), place, ...args])).stdout;
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

it("single-writer.mjs refuses its zombie on S3, too", async () => {
  const { url, credentials } = engineRecord("ceph");
  vi.stubEnv("AWS_ACCESS_KEY_ID", credentials.accessKeyId);
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", credentials.secretAccessKey);
  onTestFinished(() => void vi.unstubAllEnvs());
  const prefix = `example-${randomBytes(6).toString("hex")}`;
  const place = `s3://${credentials.bucket}/${prefix}?endpoint=${url}&region=${credentials.region}`;
  expect(await runOn(place, "single-writer.mjs")).toBe(promisedBy("single-writer.mjs"));
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
