/** Several real processes on one folder: races, sudden death, and a process that stands still. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { realEnv } from "../../../src/env/index.ts";
import { checkEmbeddedFolder, openEmbeddedStore } from "../../../src/stores/sqlite/index.ts";
import { Child, closing, FULL_EFFORT, found, putApplied, recordNamed, temporaryFolder } from "./fixtures.ts";

const KILLS = FULL_EFFORT ? 50 : 12;
const OPENINGS = FULL_EFFORT ? 600 : 60;
const MAY_UNSHARE = spawnSync("unshare", ["--pid", "--fork", "true"]).status === 0;
const ENDED_WELL = { code: 0, signal: null };

describe("processes that share a folder", () => {
  it("eight of them race for one key, and every version is replaced exactly once", async () => {
    const folder = join(temporaryFolder(), "store");
    const wins = 25;
    const racers = Array.from({ length: 8 }, () => new Child("racer.mjs", [folder, String(wins)]));
    for (const racer of racers) expect([await racer.ended, racer.errors]).toEqual([ENDED_WELL, ""]);
    const steps = racers.flatMap(({ lines }) => lines.map((line) => line.split(" ")));
    expect(steps).toHaveLength(8 * wins);
    expect(new Set(steps.map(([expected]) => expected)).size).toBe(steps.length);
    expect(new Set(steps.map(([, version]) => version)).size).toBe(steps.length);
    const store = closing(await openEmbeddedStore({ folder }));
    expect((await found(store, "counter")).record.generation).toBe(BigInt(8 * wins));
  });

  it("eight of them open a folder that does not exist yet, and agree on its clock", async () => {
    const folder = join(temporaryFolder(), "new", "store");
    const children = Array.from({ length: 8 }, () => new Child("clock.mjs", [folder]));
    for (const child of children) await child.line((line) => line === "open");
    let last = 0;
    for (let round = 0; round < 5; round += 1) {
      for (const child of children) {
        const seen = child.lines.length;
        child.send("time?");
        await child.lineCount(seen + 1);
        const time = Number(child.lines.at(-1)!.split(" ")[1]);
        expect(time).toBeGreaterThanOrEqual(last);
        last = time;
      }
    }
    const store = closing(await openEmbeddedStore({ folder }));
    const before = store.now();
    expect(before).toBeGreaterThanOrEqual(last);
    children[0]!.send("time?");
    await children[0]!.lineCount(7);
    const other = Number(children[0]!.lines.at(-1)!.split(" ")[1]);
    expect(other).toBeGreaterThanOrEqual(before);
    expect(other).toBeLessThanOrEqual(store.now());
  });

  it("killed again and again in the middle of its writes, it loses no acknowledged write and does none twice", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = closing(await openEmbeddedStore({ folder }));
    const acknowledged = new Map<string, bigint>();
    for (let round = 0; round < KILLS; round += 1) {
      const child = new Child("writer.mjs", [folder, `job-${round % 3}`]);
      await child.lineCount(4 + Math.floor(realEnv.random() * 40));
      await child.kill();
      const own = new Map<string, bigint>();
      for (const line of child.lines) {
        const [name = "", value = "", version] = line.split(" ");
        if (version === undefined || version === "") continue;
        const last = own.get(name) ?? acknowledged.get(name);
        // A write whose answer died with the process may have been done, and then the next process saw it.
        if (last !== undefined) expect([1n, 2n]).toContain(BigInt(value) - last);
        own.set(name, BigInt(value));
      }
      for (const [name, value] of own) {
        acknowledged.set(name, value);
        const { generation } = (await found(store, name)).record;
        expect([value, value + 1n]).toContain(generation);
      }
      await putApplied(store, recordNamed(`after-${round}`));
    }
    for (const [name, value] of acknowledged) {
      expect([value, value + 1n]).toContain((await found(store, name)).record.generation);
    }
    expect(await checkEmbeddedFolder(folder)).toMatchObject({ corrupt: 0 });
  });

  it("it is opened again and again while two write without a pause, and no acknowledged write is undone", async () => {
    const folder = join(temporaryFolder(), "store");
    const writers = [1, 2].map((index) => new Child("writer.mjs", [folder, `job-${index}`]));
    for (const writer of writers) await writer.lineCount(1);
    const reopeners = [1, 2].map(() => new Child("reopener.mjs", [folder, String(OPENINGS / 2)]));
    for (const reopener of reopeners)
      expect([await reopener.ended, reopener.errors]).toEqual([ENDED_WELL, ""]);
    await expectNothingUndone(folder, writers);
  }, 600_000);
});

describe("processes in namespaces of their own, as in containers", () => {
  it.skipIf(!MAY_UNSHARE && process.env.CI !== "true")(
    "two that are both process 1 write side by side while a third opens and closes the store",
    async () => {
      const folder = join(temporaryFolder(), "store");
      const own = { processes: "own" } as const;
      const writers = [1, 2].map((index) => new Child("writer.mjs", [folder, `job-${index}`], own));
      for (const writer of writers) await writer.lineCount(1);
      const reopener = new Child("reopener.mjs", [folder, "10"], own);
      expect([await reopener.ended, reopener.errors]).toEqual([ENDED_WELL, ""]);
      for (const writer of writers) await writer.lineCount(writer.lines.length + 20);
      const store = closing(await openEmbeddedStore({ folder }));
      for (const name of ["job-1/1", "job-2/1"])
        expect((await found(store, name)).record.holder).toBe("process-1");
      await expectNothingUndone(folder, writers);
    },
    120_000,
  );
});

/** A writer ends with an error when somebody else has changed its key, as it seems when its own write was undone. */
async function expectNothingUndone(folder: string, writers: readonly Child[]): Promise<void> {
  for (const writer of writers) expect([writer.process.exitCode, writer.errors]).toEqual([null, ""]);
  for (const writer of writers) await writer.kill();
  const store = closing(await openEmbeddedStore({ folder }));
  for (const { lines } of writers) {
    const last = new Map(lines.slice(0, -1).map((line) => line.split(" ") as [string, string]));
    expect(last.size).toBe(4);
    for (const [name, value] of last) {
      const { generation } = (await found(store, name)).record;
      expect([0n, 1n, 2n]).toContain(generation - BigInt(value));
    }
  }
  expect(await checkEmbeddedFolder(folder)).toMatchObject({ records: 8, corrupt: 0 });
}
