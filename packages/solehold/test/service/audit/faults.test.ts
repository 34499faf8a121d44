import { readFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { FileAuditOptions } from "../../../src/service/audit/index.ts";
import { AuditError, FileAuditTrail, verifyAudit } from "../../../src/service/audit/index.ts";
import type { Operation } from "./support.ts";
import {
  allEntries,
  eventOf,
  FaultyDisk,
  gate,
  segmentFiles,
  temporaryFolder,
  withFolder,
} from "./support.ts";

async function openOn(disk: FaultyDisk, options: Partial<FileAuditOptions> & { folder: string }) {
  return FileAuditTrail.open({ durability: "before-reply", disk, ...options });
}

const traces = async (folder: string) => (await allEntries(folder)).map((entry) => entry.traceId);

describe("a failing disk, before-reply", () => {
  test.each<[Operation, string]>([
    ["write", "ENOSPC"],
    ["sync", "EIO"],
  ])(
    "a failed %s (%s) refuses the entries of that round, and the next ones are fine",
    async (operation, code) => {
      const folder = await temporaryFolder();
      const disk = new FaultyDisk();
      const trail = await openOn(disk, { folder });
      await trail.append(eventOf({ traceId: "before" }));
      disk.failing.set(operation, code);
      const refused = await Promise.allSettled([
        trail.append(eventOf({ traceId: "lost-1" })),
        trail.append(eventOf({ traceId: "lost-2" })),
      ]);
      for (const result of refused) {
        expect(result).toMatchObject({
          status: "rejected",
          reason: { code: "AUDIT_WRITE_FAILED", retryable: true },
        });
        expect((result as PromiseRejectedResult).reason.message).toContain(code);
      }
      expect(trail.lastError).toBeInstanceOf(AuditError);
      expect(trail.lag).toBe(0);
      expect(trail.head().sequence).toBe(1);
      disk.failing.clear();
      await trail.append(eventOf({ traceId: "after" }));
      expect(trail.lastError).toBeNull();
      expect(await traces(folder)).toEqual(["before", "after"]);
      await trail.close();
      expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 2 });
    },
  );

  test("half a line on a full disk is cut off at once, or before the next write if that fails too", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder });
    await trail.append(eventOf({ traceId: "before" }));
    const path = join(folder, (await segmentFiles(folder))[0]!);
    const good = await readFile(path, "utf8");
    disk.failing.set("write", "ENOSPC");
    await expect(trail.append(eventOf())).rejects.toThrow(/ENOSPC/);
    expect(await readFile(path, "utf8")).toBe(good);
    disk.failing.set("truncate", "EIO");
    await expect(trail.append(eventOf())).rejects.toThrow(/ENOSPC/);
    expect((await readFile(path, "utf8")).length).toBeGreaterThan(good.length);
    disk.failing.delete("write");
    await expect(trail.append(eventOf())).rejects.toThrow(/EIO/);
    disk.failing.clear();
    await trail.append(eventOf({ traceId: "after" }));
    await trail.close();
    expect(await traces(folder)).toEqual(["before", "after"]);
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 2 });
  });

  test("entries that came in during a failing round are not part of it", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder });
    const syncing = gate();
    const mayFail = gate();
    disk.failing.set("sync", "EIO");
    disk.beforeSync = async () => {
      syncing.open();
      await mayFail.opened;
    };
    const first = trail.append(eventOf({ traceId: "first" }));
    await syncing.opened;
    const second = trail.append(eventOf({ traceId: "second" }));
    // The disk recovers as soon as the first round has been told.
    (first as Promise<void>).catch(() => disk.failing.clear());
    disk.beforeSync = async () => {};
    mayFail.open();
    await expect(first).rejects.toThrow(/EIO/);
    await second;
    expect(await traces(folder)).toEqual(["second"]);
    await trail.close();
  });

  test("a segment that cannot be begun refuses, and begins later", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder, segmentBytes: 1024 });
    for (let index = 0; index < 3; index++) await trail.append(eventOf());
    for (const operation of ["open", "syncFolder"] as const) {
      disk.failing.set(operation, "ENOSPC");
      await expect(trail.append(eventOf())).rejects.toThrow(/ENOSPC/);
      disk.failing.clear();
    }
    await trail.append(eventOf());
    await trail.close();
    expect(await segmentFiles(folder)).toHaveLength(2);
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 4 });
  });

  test("a refusal that nobody looks at does not end the process", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", note);
    try {
      const trail = await openOn(disk, { folder });
      disk.failing.set("write", "EIO");
      void trail.append(eventOf());
      void trail.append(eventOf({ at: -1 }));
      await trail.flush().catch(() => undefined);
      disk.failing.clear();
      await trail.close();
      await new Promise((resolve) => setImmediate(resolve));
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", note);
    }
  });

  test("more waiting events than allowed are refused, not hoarded", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder, maxPending: 3 });
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => trail.append(eventOf())));
    expect(results.map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "fulfilled",
      "rejected",
      "rejected",
    ]);
    expect(results[4]).toMatchObject({ reason: { code: "AUDIT_OVERLOADED", retryable: true } });
    await trail.append(eventOf());
    await trail.close();
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 4 });
  });

  test("an anchor that cannot be written harms no entry and is made up for", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    let syncs = 0;
    const trail = await openOn(disk, { folder, anchorEvery: 2 });
    disk.beforeSync = async () => {
      syncs += 1;
      // 1: entry, 2: entry, 3: the anchor of the second entry.
      if (syncs === 3) throw new Error("EIO: the anchor");
    };
    await trail.append(eventOf());
    await trail.append(eventOf());
    await trail.append(eventOf());
    await trail.close();
    const anchors = (await readFile(join(folder, "anchors.jsonl"), "utf8")).trimEnd().split("\n");
    expect(anchors.map((line) => JSON.parse(line).sequence)).toEqual([3]);
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 3 });
  });
});

describe("a failing disk, background", () => {
  test("nothing is lost: the lag and the error are visible, and the next occasion writes everything", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder, durability: "background" });
    disk.failing.set("write", "ENOSPC");
    trail.append(eventOf({ traceId: "1" }));
    trail.append(eventOf({ traceId: "2" }));
    await expect(trail.flush()).rejects.toMatchObject({ code: "AUDIT_WRITE_FAILED" });
    expect(trail.lag).toBe(2);
    expect(trail.lastError?.message).toContain("ENOSPC");
    expect(await trail.query()).toEqual([]);
    disk.failing.clear();
    disk.failing.set("sync", "EIO");
    trail.append(eventOf({ traceId: "3" }));
    await expect(trail.flush()).rejects.toThrow(/EIO/);
    expect(trail).toMatchObject({ lag: 3, dropped: 0 });
    disk.failing.clear();
    await trail.flush();
    expect(trail).toMatchObject({ lag: 0, lastError: null });
    await trail.close();
    expect(await traces(folder)).toEqual(["1", "2", "3"]);
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 3 });
  });

  test("what had to be dropped is counted, and the trail itself says where and how much", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder, durability: "background", maxPending: 4 });
    disk.failing.set("write", "ENOSPC");
    for (let index = 1; index <= 8; index++) trail.append(eventOf({ traceId: `${index}`, at: index }));
    expect(trail).toMatchObject({ lag: 3, dropped: 5 });
    disk.failing.clear();
    await trail.flush();
    trail.append(eventOf({ traceId: "9" }));
    await trail.close();
    const entries = await allEntries(folder);
    expect(entries.map((entry) => entry.traceId)).toEqual(["1", "2", "3", "", "9"]);
    expect(entries[3]).toMatchObject({ action: "audit-gap", at: 8, detail: { dropped: 5 } });
    expect(trail.dropped).toBe(5);
  });

  test("a dropped event still makes the disk be tried again", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder, durability: "background", maxPending: 2 });
    disk.failing.set("write", "ENOSPC");
    trail.append(eventOf({ traceId: "kept" }));
    await expect(trail.flush()).rejects.toThrow();
    disk.failing.clear();
    trail.append(eventOf({ traceId: "dropped" }));
    while (disk.counts.write < 2) await new Promise((resolve) => setImmediate(resolve));
    await trail.close();
    expect((await allEntries(folder)).map((entry) => entry.action)).toEqual(["grant", "audit-gap"]);
  });

  test("closing on a broken disk says how much is lost, and gives the folder back", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder, durability: "background" });
    disk.failing.set("write", "ENOSPC");
    trail.append(eventOf());
    trail.append(eventOf());
    await expect(trail.close()).rejects.toThrow(/2 entries could not be saved: .*ENOSPC/);
    disk.failing.clear();
    const again = await openOn(disk, { folder });
    await again.append(eventOf());
    await again.close();
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 1 });
  });

  test("a flush asked for while a failed round is being cleaned up gets an answer", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openOn(disk, { folder, durability: "background" });
    const meanwhile: Promise<void>[] = [];
    disk.beforeTruncate = async () => {
      if (meanwhile.length === 0) meanwhile.push(trail.flush());
    };
    disk.failing.set("write", "ENOSPC");
    trail.append(eventOf());
    await expect(trail.flush()).rejects.toThrow(/ENOSPC/);
    expect(meanwhile).toHaveLength(1);
    await expect(meanwhile[0]).rejects.toThrow(/ENOSPC/);
    disk.failing.clear();
    await trail.close();
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 1 });
  });
});

type Step =
  | { readonly kind: "append"; readonly count: number }
  | { readonly kind: "fail"; readonly operation: Operation; readonly part: number }
  | { readonly kind: "heal" };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant("append" as const), count: fc.integer({ min: 1, max: 6 }) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("fail" as const),
        operation: fc.constantFrom<Operation>("open", "write", "sync", "truncate", "syncFolder"),
        part: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
    },
    { weight: 2, arbitrary: fc.constant({ kind: "heal" as const }) },
  ),
  { maxLength: 14 },
);

/** Plays the steps and returns what was acknowledged and what was refused, in order. */
async function play(trail: FileAuditTrail, disk: FaultyDisk, script: readonly Step[]) {
  const acknowledged: string[] = [];
  const appended: string[] = [];
  for (const step of script) {
    if (step.kind === "heal") disk.failing.clear();
    if (step.kind === "fail") {
      disk.failing.set(step.operation, "EIO");
      disk.partOfWrite = step.part;
    }
    if (step.kind !== "append") continue;
    const names = Array.from({ length: step.count }, (_, index) => `${appended.length + index}`);
    appended.push(...names);
    const results = await Promise.allSettled(names.map((traceId) => trail.append(eventOf({ traceId }))));
    await trail.flush().catch(() => undefined);
    acknowledged.push(...names.filter((_, index) => results[index]?.status === "fulfilled"));
  }
  return { acknowledged, appended };
}

describe("any order of failures", () => {
  test("before-reply: the trail holds exactly what was acknowledged, in order, and verifies", async () => {
    await fc.assert(
      fc.asyncProperty(steps, (script) =>
        withFolder(async (folder) => {
          const disk = new FaultyDisk();
          const trail = await openOn(disk, { folder, segmentBytes: 1024, anchorEvery: 3 });
          const { acknowledged } = await play(trail, disk, script);
          disk.failing.clear();
          await trail.append(eventOf({ traceId: "end" }));
          await trail.close();
          expect(await traces(folder)).toEqual([...acknowledged, "end"]);
          expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: acknowledged.length + 1 });
        }),
      ),
      { numRuns: 60 },
    );
  });

  test("background: the trail holds everything, in order, and verifies", async () => {
    await fc.assert(
      fc.asyncProperty(steps, (script) =>
        withFolder(async (folder) => {
          const disk = new FaultyDisk();
          const trail = await openOn(disk, {
            folder,
            durability: "background",
            segmentBytes: 1024,
            anchorEvery: 3,
          });
          const { appended } = await play(trail, disk, script);
          disk.failing.clear();
          await trail.close();
          expect(await traces(folder)).toEqual(appended);
          expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: appended.length });
        }),
      ),
      { numRuns: 60 },
    );
  });

  test("a loss of power at any point, any part of the unsynced bytes kept: all acknowledged entries are there", async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.double({ min: 0, max: 1, noNaN: true }), (script, keep) =>
        withFolder(async (folder) => {
          const disk = new FaultyDisk();
          const live = join(folder, "live");
          const trail = await openOn(disk, { folder: live, segmentBytes: 1024, anchorEvery: 3 });
          const { acknowledged } = await play(trail, disk, script);
          const crashed = await disk.powerLoss(live, join(folder, "crashed"), keep);
          disk.failing.clear();
          await trail.close();
          const again = await FileAuditTrail.open({
            folder: crashed,
            durability: "before-reply",
            segmentBytes: 1024,
          });
          await again.append(eventOf({ traceId: "end" }));
          await again.close();
          const found = await traces(crashed);
          expect(found.filter((trace) => acknowledged.includes(trace))).toEqual(acknowledged);
          expect(await verifyAudit(crashed)).toMatchObject({ ok: true, entries: found.length });
        }),
      ),
      { numRuns: 60 },
    );
  });
});

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
