/** Several real processes on one folder: races, sudden death, and a process that stands still. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { realEnv } from "../../../src/env/index.ts";
import { openEmbeddedStore } from "../../../src/stores/sqlite/index.ts";
import { Child, closing, found, get, put, putApplied, recordNamed, temporaryFolder } from "./fixtures.ts";

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

  it("killed fifty times in the middle of its writes, it loses no acknowledged write and does none twice", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = closing(await openEmbeddedStore({ folder }));
    const acknowledged = new Map<string, bigint>();
    for (let round = 0; round < 50; round += 1) {
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
  }, 120_000);

  it("it is opened six hundred times while two write without a pause, and no acknowledged write is undone", async () => {
    const folder = join(temporaryFolder(), "store");
    const writers = [1, 2].map((index) => new Child("writer.mjs", [folder, `job-${index}`]));
    for (const writer of writers) await writer.lineCount(1);
    const reopeners = [1, 2].map(() => new Child("reopener.mjs", [folder, "300"]));
    for (const reopener of reopeners)
      expect([await reopener.ended, reopener.errors]).toEqual([ENDED_WELL, ""]);
    // A writer ends with an error when somebody else has changed its key, as it seems when its own write was undone.
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
  }, 120_000);

  it("one that stands still in the middle of a commit delays writes, but not this process, and its death frees them", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = closing(await openEmbeddedStore({ folder }));
    await putApplied(store, recordNamed("before"));
    const holder = new Child("lock-holder.mjs", [folder]);
    await holder.line((line) => line === "holding");
    let settled = false;
    const waiting = put(store, recordNamed("during")).then((result) => {
      settled = true;
      return result;
    });
    // Each of these needs a turn of this process's event loop.
    for (let turn = 0; turn < 20; turn += 1) {
      await new Promise<void>((resolve) => realEnv.timer(1, resolve, { keepAlive: "yes" }));
      expect((await get(store, "before")).kind).toBe("found");
    }
    expect(settled).toBe(false);
    await holder.kill();
    expect((await waiting).kind).toBe("applied");
  });
});
