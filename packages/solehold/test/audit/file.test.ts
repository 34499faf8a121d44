import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { FileAuditOptions } from "../../src/audit/index.ts";
import { exportAudit, FileAuditTrail, genesis, verifyAudit } from "../../src/audit/index.ts";
import {
  allEntries,
  eventOf,
  FaultyDisk,
  gate,
  readLinesOf,
  segmentFiles,
  temporaryFolder,
} from "./support.ts";

async function openTrail(options: Partial<FileAuditOptions> & { folder: string }): Promise<FileAuditTrail> {
  return FileAuditTrail.open({ durability: "before-reply", ...options });
}

describe("FileAuditTrail", () => {
  test.each(["before-reply", "background"] as const)(
    "%s: what was appended is there in order and verifies",
    async (durability) => {
      const folder = await temporaryFolder();
      const trail = await openTrail({ folder, durability, trailId: "t" });
      expect(trail.head()).toEqual(genesis("t"));
      for (let index = 0; index < 5; index++) await trail.append(eventOf({ traceId: `trace-${index}` }));
      await trail.flush();
      expect(trail.head().sequence).toBe(5);
      expect((await trail.query()).map((entry) => entry.traceId)).toEqual(
        [0, 1, 2, 3, 4].map((n) => `trace-${n}`),
      );
      expect(trail).toMatchObject({ lag: 0, lastError: null, dropped: 0, recovered: null, trailId: "t" });
      await trail.close();
      expect(await verifyAudit(folder)).toEqual({ ok: true, entries: 5, head: trail.head() });
    },
  );

  test("a background append is taken at once and is safe after a flush", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openTrail({ folder, durability: "background", disk });
    expect(trail.append(eventOf())).toBeUndefined();
    expect(trail.lag).toBe(1);
    expect(trail.head().sequence).toBe(0);
    await trail.flush();
    expect(trail.lag).toBe(0);
    expect(trail.head().sequence).toBe(1);
    expect(disk.counts.sync).toBe(1);
    await trail.close();
  });

  test("a reopened trail continues its chain, its numbers and its segment", async () => {
    const folder = await temporaryFolder();
    for (let round = 0; round < 4; round++) {
      const trail = await openTrail({ folder });
      expect(trail.head().sequence).toBe(round * 2);
      await Promise.all([trail.append(eventOf()), trail.append(eventOf())]);
      await trail.close();
    }
    expect(await segmentFiles(folder)).toHaveLength(1);
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 8 });
  });

  test("segments end at their size, are named by their first entry, and chain on across reopening", async () => {
    const folder = await temporaryFolder();
    const options = { folder, segmentBytes: 1024 };
    const first = await openTrail(options);
    await Promise.all(Array.from({ length: 10 }, () => first.append(eventOf())));
    await first.close();
    const second = await openTrail(options);
    for (let index = 0; index < 10; index++) await second.append(eventOf());
    await second.close();
    const files = await segmentFiles(folder);
    const starts = await Promise.all(
      files.map(
        async (file) => JSON.parse((await readFile(join(folder, file), "utf8")).split("\n")[0]!).sequence,
      ),
    );
    expect(starts).toEqual([1, 4, 7, 10, 13, 16, 19]);
    expect(files).toEqual(starts.map((start) => `audit-${String(start).padStart(12, "0")}.jsonl`));
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 20 });
  });

  test("appends of one turn share one write and one sync; those made meanwhile share the next", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openTrail({ folder, disk });
    const syncing = gate();
    const mayEnd = gate();
    disk.beforeSync = () => {
      syncing.open();
      return mayEnd.opened;
    };
    const order: number[] = [];
    const append = async (index: number) => {
      await null;
      await trail.append(eventOf({ traceId: `${index}` }));
      order.push(index);
    };
    const early = Array.from({ length: 64 }, (_, index) => append(index));
    await syncing.opened;
    expect(disk.counts).toMatchObject({ write: 1, sync: 0 });
    expect(await readLinesOf(folder)).toHaveLength(64);
    const late = Array.from({ length: 64 }, (_, index) => append(64 + index));
    await null;
    expect(order).toEqual([]);
    mayEnd.open();
    await Promise.all([...early, ...late]);
    expect(disk.counts).toMatchObject({ write: 2, sync: 2 });
    expect(order).toEqual(Array.from({ length: 128 }, (_, index) => index));
    expect((await allEntries(folder)).map((entry) => Number(entry.traceId))).toEqual(order);
    await trail.close();
  });

  test("callers that come back at different depths of await still share each round", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openTrail({ folder, disk });
    const through = async (layers: number): Promise<void> => {
      await (layers === 1 ? trail.append(eventOf()) : through(layers - 1));
    };
    const caller = async (layers: number) => {
      for (let round = 0; round < 10; round++)
        await (layers === 0 ? trail.append(eventOf()) : through(layers));
    };
    await Promise.all(Array.from({ length: 8 }, (_, layers) => caller(layers)));
    expect(trail.head().sequence).toBe(80);
    expect(disk.counts).toMatchObject({ write: 10, sync: 10 });
    await trail.close();
  });

  test("an acknowledged entry was written and synced before", async () => {
    const folder = await temporaryFolder();
    const disk = new FaultyDisk();
    const trail = await openTrail({ folder, disk });
    for (let index = 1; index <= 3; index++) {
      await trail.append(eventOf());
      expect(await readLinesOf(folder)).toHaveLength(index);
      expect(disk.counts.sync).toBe(index);
      expect(disk.safeBytes.get((await segmentFiles(folder))[0]!)).toBe(
        (await readFile(join(folder, (await segmentFiles(folder))[0]!))).length,
      );
    }
    await trail.close();
  });

  test("anchors are written every so many entries, at the end of a segment, and on close", async () => {
    const folder = await temporaryFolder();
    const readAnchors = async (): Promise<readonly string[]> =>
      (await readFile(join(folder, "anchors.jsonl"), "utf8")).split("\n").filter((line) => line !== "");
    const trail = await openTrail({ folder, segmentBytes: 4096, anchorEvery: 4 });
    for (let index = 1; index <= 14; index++) {
      await trail.append(eventOf());
      // An entry does not wait for its anchor. The next one that is due does not either: it would be left out.
      if (index === 4 || index === 8) await expect.poll(readAnchors).toHaveLength(index / 4);
    }
    await trail.close();
    const anchors = await readAnchors();
    const sequences = anchors.map((line) => (JSON.parse(line) as { sequence: number }).sequence);
    const secondSegment = Number((await segmentFiles(folder))[1]!.slice(6, 18));
    expect(sequences).toEqual([4, 8, secondSegment - 1, 14]);
    expect(JSON.parse(anchors.at(-1)!)).toEqual(trail.head());
  });

  test("refuses a malformed event without losing its place, or repairs it when asked to", async () => {
    const folder = await temporaryFolder();
    const malformed = eventOf({ holder: "h".repeat(999) });
    const strict = await openTrail({ folder });
    await expect(strict.append(malformed)).rejects.toMatchObject({ code: "AUDIT_EVENT_INVALID" });
    await strict.append(eventOf());
    await strict.close();
    const background = await openTrail({ folder, durability: "background" });
    expect(() => background.append(malformed)).toThrow(/holder must be a string/);
    await background.close();
    const lenient = await openTrail({ folder, invalidEvents: "sanitise" });
    await lenient.append(malformed);
    await lenient.close();
    expect(await allEntries(folder)).toMatchObject([
      { sequence: 1 },
      { sequence: 2, detail: { sanitised: "holder" } },
    ]);
  });

  test("no append is taken after close, and closing twice is fine", async () => {
    const folder = await temporaryFolder();
    const trail = await openTrail({ folder });
    const last = trail.append(eventOf());
    await Promise.all([trail.close(), trail.close()]);
    await last;
    await expect(trail.append(eventOf())).rejects.toMatchObject({ code: "AUDIT_CLOSED" });
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 1 });
  });

  test("a file that something else writes to is left alone from then on", async () => {
    const folder = await temporaryFolder();
    const trail = await openTrail({ folder });
    await trail.append(eventOf());
    const path = join(folder, (await segmentFiles(folder))[0]!);
    await appendFile(path, "someone else\n");
    const before = await readFile(path, "utf8");
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(trail.append(eventOf())).rejects.toMatchObject({
        code: "AUDIT_DAMAGED",
        retryable: false,
      });
    }
    await trail.close();
    expect(await readFile(path, "utf8")).toBe(before);
  });

  test("the same holds for what appeared between opening and the first append", async () => {
    const folder = await temporaryFolder();
    const first = await openTrail({ folder });
    await first.append(eventOf());
    await first.close();
    const path = join(folder, (await segmentFiles(folder))[0]!);
    const second = await openTrail({ folder });
    await appendFile(path, "someone else\n");
    const before = await readFile(path, "utf8");
    await expect(second.append(eventOf())).rejects.toMatchObject({ code: "AUDIT_DAMAGED" });
    await second.close();
    expect(await readFile(path, "utf8")).toBe(before);
  });

  test.each([
    [{ durability: "soon" }, /durability must be "before-reply" or "background"; got soon/],
    [{ folder: "" }, /folder must be a path/],
    [{ segmentBytes: 10 }, /segmentBytes must be a whole number from 1024 .* got 10/],
    [{ anchorEvery: 0 }, /anchorEvery must be .* got 0/],
    [{ maxPending: 1.5 }, /maxPending must be .* got 1\.5/],
    [{ trailId: "no spaces" }, /trailId must be .* got "no spaces"/],
  ])("refuses the options %j before it touches the disk", async (changes, message) => {
    const folder = join(await temporaryFolder(), "new");
    const options = { folder, durability: "background", ...changes } as FileAuditOptions;
    await expect(FileAuditTrail.open(options)).rejects.toThrow(message);
    await expect(readFile(folder)).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("refuses to continue a trail under another id, and a path that is not a folder", async () => {
    const folder = await temporaryFolder();
    await (await openTrail({ folder, trailId: "one" })).close();
    await expect(openTrail({ folder, trailId: "two" })).rejects.toThrow(/holds the trail one; got two/);
    const trail = await openTrail({ folder });
    expect(trail.trailId).toBe("one");
    await trail.close();
    await expect(openTrail({ folder: join(folder, "trail.json") })).rejects.toThrow(/cannot be created/);
  });

  test("trails get ids of their own unless one is given", async () => {
    const trails = await Promise.all([1, 2].map(async () => openTrail({ folder: await temporaryFolder() })));
    expect(trails[0]!.trailId).not.toBe(trails[1]!.trailId);
    await Promise.all(trails.map((trail) => trail.close()));
  });
});

describe("reading a file trail", () => {
  async function filled(): Promise<{ folder: string; trail: FileAuditTrail }> {
    const folder = await temporaryFolder();
    const trail = await openTrail({ folder, durability: "background", segmentBytes: 1024 });
    for (let index = 1; index <= 30; index++) {
      const action = index % 2 === 0 ? "renew" : "use";
      trail.append(
        eventOf({
          key: `key-${index % 3}`,
          tenant: index > 20 ? "late" : "early",
          action,
          traceId: `"key":"key-0"`,
        }),
      );
    }
    return { folder, trail };
  }

  test("queries see what was just appended, filtered, limited, from either end, over all segments", async () => {
    const { trail } = await filled();
    const found = async (query: Parameters<typeof trail.query>[0]) =>
      (await trail.query(query)).map((entry) => entry.sequence);
    expect(await found({})).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
    expect(await found({ key: "key-0" })).toEqual([3, 6, 9, 12, 15, 18, 21, 24, 27, 30]);
    expect(await found({ key: "key-0", limit: 3 })).toEqual([3, 6, 9]);
    expect(await found({ key: "key-0", limit: 3, order: "newest-first" })).toEqual([30, 27, 24]);
    expect(await found({ key: "key-0", order: "newest-first", afterSequence: 22 })).toEqual([30, 27, 24]);
    expect(await found({ tenant: "late", action: "renew" })).toEqual([22, 24, 26, 28, 30]);
    expect(await found({ afterSequence: 28 })).toEqual([29, 30]);
    expect(await found({ holder: "nobody" })).toEqual([]);
    for (let after = 0; after <= 30; after++) {
      expect(await found({ afterSequence: after, limit: 1 })).toEqual(after === 30 ? [] : [after + 1]);
    }
    await expect(trail.query({ limit: -1 })).rejects.toThrow(/limit must be/);
    await trail.close();
  });

  test("an export yields every matching entry, also while the trail is being written", async () => {
    const { folder, trail } = await filled();
    await trail.flush();
    await appendFile(join(folder, (await segmentFiles(folder)).at(-1)!), '{"sequence":31,"previ');
    const exported: number[] = [];
    for await (const entry of exportAudit(folder, { tenant: "late" })) exported.push(entry.sequence);
    expect(exported).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30]);
    await trail.close();
  });

  test("an export stops at a line that is not an entry and says where", async () => {
    const { folder, trail } = await filled();
    await trail.close();
    const file = (await segmentFiles(folder)).at(-1)!;
    await appendFile(join(folder, file), "nonsense\n");
    await expect(allEntries(folder)).rejects.toMatchObject({
      code: "AUDIT_DAMAGED",
      message: expect.stringMatching(new RegExp(`${file} line \\d+ is not an audit entry`)),
    });
  });
});
