/** A full disk, a disk that may not be written, and a lock that is not given up: errors that say what to do. */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { realEnv } from "../../../src/env/index.ts";
import { checkEmbeddedFolder, openEmbeddedStore } from "../../../src/stores/sqlite/index.ts";
import { openWithSeams } from "../../../src/stores/sqlite/open.ts";
import { LockHolder } from "./damage.ts";
import {
  afterThisTest,
  Child,
  closing,
  found,
  get,
  put,
  putApplied,
  recordNamed,
  temporaryFolder,
} from "./fixtures.ts";

const MAY_MOUNT = process.getuid?.() === 0 && process.platform === "linux";

/** A small disk in memory. */
function smallDisk(megabytes: number): string {
  const disk = temporaryFolder();
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", disk]);
  afterThisTest(() => void execFileSync("umount", ["-l", disk]));
  return disk;
}

describe("a full disk", () => {
  it.skipIf(!MAY_MOUNT)(
    "refuses writes, loses nothing, ends nothing, and goes on once there is room",
    async () => {
      const disk = smallDisk(6);
      writeFileSync(join(disk, "ballast"), Buffer.alloc(2 ** 20));
      const folder = join(disk, "store");
      const child = new Child("fill-up.mjs", [folder]);
      await child.line((line) => line.includes("acknowledged"));
      const [many, some, one, count] = child.lines.map((line) => JSON.parse(line));
      for (const refusal of [many, some, one])
        expect(refusal).toMatchObject({
          kind: "full",
          outcome: "not-applied",
          message: expect.stringMatching(/no space left .*: free some and try again/),
        });
      expect(count.acknowledged).toBeGreaterThan(500);
      expect(count.there).toBe(count.acknowledged);
      rmSync(join(disk, "ballast"));
      child.send("go on");
      await child.line((line) => line === "written");
      expect([await child.ended, child.errors]).toEqual([{ code: 0, signal: null }, ""]);
      expect(await checkEmbeddedFolder(folder)).toMatchObject({
        records: count.acknowledged + 1,
        corrupt: 0,
      });
    },
  );

  it.skipIf(!MAY_MOUNT)("on which there is no room for a new store says so", async () => {
    const disk = smallDisk(1);
    writeFileSync(join(disk, "ballast"), Buffer.alloc(2 ** 20 - 8_192));
    await expect(openEmbeddedStore({ folder: join(disk, "store") })).rejects.toMatchObject({
      kind: "full",
      message: expect.stringContaining("no space left"),
    });
  });

  it("as a limit of the process refuses writes, loses nothing and ends nothing", async () => {
    const folder = join(temporaryFolder(), "store");
    const child = new Child("fill-up.mjs", [folder], { fileBlocks: 4_096 });
    const { acknowledged, there } = JSON.parse(await child.line((line) => line.includes("acknowledged")));
    expect(acknowledged).toBeGreaterThan(500);
    expect(there).toBe(acknowledged);
    // A limit of the process is no lack of space on the disk, and looks like a failing disk.
    for (const line of child.lines.slice(0, 3)) expect(["full", "internal"]).toContain(JSON.parse(line).kind);
    await child.kill();
    expect(await checkEmbeddedFolder(folder)).toMatchObject({ corrupt: 0 });
  });
});

describe("a disk that may not be written", () => {
  it.skipIf(!MAY_MOUNT)("is named, whether there is a store on it or not", async () => {
    const disk = smallDisk(4);
    const folder = join(disk, "store");
    const store = await openEmbeddedStore({ folder });
    await putApplied(store, recordNamed("job"));
    await store.close();
    mkdirSync(join(disk, "empty"));
    execFileSync("mount", ["-o", "remount,ro", disk]);
    for (const each of [folder, join(disk, "empty"), join(disk, "new")])
      await expect(openEmbeddedStore({ folder: each })).rejects.toMatchObject({
        kind: "config",
        message: expect.stringMatching(/on a read-only file system: choose a folder that can be written/),
      });
  });
});

describe("a process that stands still in the middle of a commit", () => {
  it("delays writes, but neither reads nor this process, and its death frees them", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = closing(await openEmbeddedStore({ folder }));
    await putApplied(store, recordNamed("before"));
    const holder = await LockHolder.on(folder);
    let settled = false;
    const waiting = put(store, recordNamed("during")).then((result) => {
      settled = true;
      return result;
    });
    // Each of these needs a turn of this process's event loop.
    for (let turn = 0; turn < 20; turn += 1) {
      await new Promise<void>((resolve) => realEnv.timer(1, resolve, { keepAlive: true }));
      expect((await get(store, "before")).kind).toBe("found");
    }
    expect(settled).toBe(false);
    await holder.release();
    expect((await waiting).kind).toBe("applied");
  });

  it("for too long makes writes fail, with advice; none of them was done, and later ones are", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = closing(await openWithSeams({ folder }, { busyMs: 20 }));
    const holder = await LockHolder.on(folder);
    await expect(put(store, recordNamed("during"))).rejects.toMatchObject({
      kind: "timeout",
      outcome: "not-applied",
      message: expect.stringMatching(/another process has kept the write lock .* continue or end it/),
    });
    await holder.release();
    expect((await get(store, "during")).kind).toBe("absent");
    await putApplied(store, recordNamed("after"));
    expect((await found(store, "after")).record.key.name).toBe("after");
  });
});
