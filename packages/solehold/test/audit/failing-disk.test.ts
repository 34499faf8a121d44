/** A disk that fails: before a reply the entries are refused and nothing else; in the background nothing is lost. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { AuditError, verifyAudit } from "../../src/audit/index.ts";
import type { Operation } from "./support.ts";
import {
  allEntries,
  eventOf,
  FaultyDisk,
  gate,
  openOn,
  segmentFiles,
  temporaryFolder,
  traces,
} from "./support.ts";

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
    // The disk recovers as soon as the first round has failed.
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
