/** On the way to the device: what an entry waits for, and what it does not wait for. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { verifyAudit } from "../../src/audit/index.ts";
import { eventOf, FaultyDisk, gate, openOn, segmentFiles, temporaryFolder, traces } from "./support.ts";

describe("on the way to the device", () => {
  test("an entry that is written but not synced is not acknowledged", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const [syncing, goOn] = [gate(), gate()];
    disk.beforeSync = async () => {
      syncing.open();
      await goOn.opened;
    };
    const trail = await openOn(disk, { folder });
    let isAcknowledged = false;
    const appended = Promise.resolve(trail.append(eventOf({ traceId: "1" }))).then(() => {
      isAcknowledged = true;
    });
    await syncing.opened;
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    const [segment] = await segmentFiles(folder);
    expect((await readFile(join(folder, segment!))).length).toBeGreaterThan(0);
    expect([isAcknowledged, trail.head().sequence, trail.lag]).toEqual([false, 0, 1]);
    goOn.open();
    await appended;
    expect(disk.safeBytes.get(segment!)).toBe((await readFile(join(folder, segment!))).length);
    await trail.close();
  });

  test("lines that a killed process left to the system are on the device before the next one goes on", async () => {
    const folder = await temporaryFolder();
    const before = await openOn(new FaultyDisk(), { folder });
    await before.append(eventOf({ traceId: "1" }));
    await before.close();
    // Nothing of it was synced as far as this disk knows.
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder });
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
});
