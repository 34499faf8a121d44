/** Ways to the device: in one step or two, slow anchors, and rounds that wait for who holds the trail. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FileAuditTrail, verifyAudit } from "../../../src/service/audit/index.ts";
import { eventOf, FaultyDisk, gate, openOn, segmentFiles, temporaryFolder, traces } from "./support.ts";

describe("ways to the device", () => {
  test("a disk that cannot write and sync in one step does it in two, and nothing is acknowledged between", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const plain = {
      open: async (path: string) => {
        const { writeSafely: _, ...file } = await disk.open(path);
        return file;
      },
      syncFolder: (path: string) => disk.syncFolder(path),
    };
    const trail = await FileAuditTrail.open({ folder, durability: "before-reply", disk: plain });
    await trail.append(eventOf({ traceId: "1" }));
    await trail.append(eventOf({ traceId: "2" }));
    expect(disk.counts).toMatchObject({ write: 2, sync: 2 });
    const [segment] = await segmentFiles(folder);
    expect(disk.safeBytes.get(segment!)).toBe((await readFile(join(folder, segment!))).length);
    await trail.close();
  });

  test("an anchor that takes its time keeps no entry waiting, and closing waits for it", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const slow = gate();
    let anchors = 0;
    const slowAnchors = {
      open: async (path: string) => {
        const file = await disk.open(path);
        if (!path.includes("anchors")) return file;
        return {
          ...file,
          sync: async () => {
            anchors += 1;
            await slow.opened;
            await file.sync();
          },
        };
      },
      syncFolder: (path: string) => disk.syncFolder(path),
    };
    const trail = await openOn(disk, { folder, disk: slowAnchors, anchorEvery: 2 });
    for (const traceId of ["1", "2", "3", "4", "5"]) await trail.append(eventOf({ traceId }));
    expect(anchors).toBe(1);
    let closed = false;
    const closing = trail.close().then(() => {
      closed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    slow.open();
    await closing;
    expect(await traces(folder)).toEqual(["1", "2", "3", "4", "5"]);
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 5 });
  });

  test("what belongs together is made safe in one step, while somebody holds the trail", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder });
    const letGo = trail.hold();
    let isSafe = false;
    const first = Promise.resolve(trail.append(eventOf({ traceId: "release" }))).then(() => {
      isSafe = true;
    });
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect([isSafe, disk.counts.write]).toEqual([false, 0]);
    const second = trail.append(eventOf({ traceId: "grant" }));
    letGo();
    letGo();
    await Promise.all([first, second]);
    expect(disk.counts.sync).toBe(1);
    await trail.append(eventOf({ traceId: "later" }));
    expect(disk.counts.sync).toBe(2);
    expect(await traces(folder)).toEqual(["release", "grant", "later"]);
    await trail.close();
  });

  test("a trail with more to do does not wait for who holds it, and who comes later holds up no round that was due", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder });
    const letGo = trail.hold();
    await Promise.all(["1", "2", "3", "4", "5"].map((traceId) => trail.append(eventOf({ traceId }))));
    const due = trail.append(eventOf({ traceId: "6" }));
    await new Promise((resolve) => setImmediate(resolve));
    trail.hold();
    letGo();
    await due;
    expect(await traces(folder)).toEqual(["1", "2", "3", "4", "5", "6"]);
  });
});
