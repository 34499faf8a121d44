import { appendFile, cp, mkdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { realDisk } from "../../src/audit/disk.ts";
import { readTrailId } from "../../src/audit/folder.ts";
import { FileAuditTrail, verifyAudit } from "../../src/audit/index.ts";
import { recoverTrail } from "../../src/audit/recovery.ts";
import { allEntries, crashCopy, eventOf, segmentFiles, temporaryFolder } from "./support.ts";

const LINE_FEED = 0x0a;

/** A folder as a crash leaves it: three entries a segment, the last segment not anchored. */
async function crashedTrail(entries: number): Promise<string> {
  const folder = await temporaryFolder();
  const trail = await FileAuditTrail.open({ folder, durability: "before-reply", segmentBytes: 1024 });
  for (let index = 1; index <= entries; index++) await trail.append(eventOf({ traceId: `trace-${index}` }));
  const crashed = await crashCopy(folder, join(await temporaryFolder(), "crashed"));
  await trail.close();
  return crashed;
}

const reopen = (folder: string) =>
  FileAuditTrail.open({ folder, durability: "before-reply", segmentBytes: 1024 });

describe("reopening after a crash", () => {
  const places = [
    { where: "in the middle of a segment", entries: 5 },
    { where: "in the first line of a segment", entries: 4 },
    { where: "in the very first line of the trail", entries: 1 },
  ];

  /** The last segment of a crashed trail, and where its last line begins. */
  async function lastSegment(folder: string) {
    const file = (await segmentFiles(folder)).at(-1)!;
    const content = await readFile(join(folder, file));
    return {
      file,
      path: join(folder, file),
      content,
      start: content.lastIndexOf(LINE_FEED, content.length - 2) + 1,
    };
  }

  test.each(places)(
    "a last line torn at every length is cut off and reported: $where",
    async ({ entries }) => {
      const folder = await crashedTrail(entries);
      const trailId = (await readTrailId(folder))!;
      const { file, path, content, start } = await lastSegment(folder);
      const afterSequence = entries - 1;
      for (let length = start; length < content.length; length++) {
        await writeFile(path, content.subarray(0, length));
        const end = await recoverTrail(realDisk, folder, trailId);
        const cutBytes = length - start;
        expect(end.recovered).toEqual(cutBytes === 0 ? null : { file, cutBytes, afterSequence });
        expect(end).toMatchObject({ head: { sequence: afterSequence }, segment: { bytes: start } });
        expect(await readFile(path)).toEqual(content.subarray(0, start));
      }
    },
  );

  test.each(places)("the chain goes on after a torn last line: $where", async ({ entries }) => {
    const crashed = await crashedTrail(entries);
    const { file, content, start } = await lastSegment(crashed);
    for (const length of [start, start + 1, content.length - 2, content.length - 1]) {
      const copy = join(await temporaryFolder(), "copy");
      await cp(crashed, copy, { recursive: true });
      await truncate(join(copy, file), length);
      const trail = await reopen(copy);
      expect(trail.recovered?.cutBytes ?? 0).toBe(length - start);
      await trail.append(eventOf({ traceId: "after" }));
      await trail.close();
      expect(await verifyAudit(copy)).toMatchObject({ ok: true, entries });
      expect((await allEntries(copy)).at(-1)).toMatchObject({ sequence: entries, traceId: "after" });
    }
  });

  test("a tail that the file system filled with zeros is cut off like any torn line", async () => {
    const crashed = await crashedTrail(5);
    const file = (await segmentFiles(crashed)).at(-1)!;
    await appendFile(join(crashed, file), Buffer.alloc(700_000));
    const trail = await reopen(crashed);
    expect(trail.recovered).toEqual({ file, cutBytes: 700_000, afterSequence: 5 });
    await trail.append(eventOf());
    await trail.close();
    expect(await verifyAudit(crashed)).toMatchObject({ ok: true, entries: 6 });
  });

  test.each(['{"sequence":5,"hash":"', "\0".repeat(500)])(
    "an incomplete anchor is cut off (%#)",
    async (torn) => {
      const crashed = await crashedTrail(5);
      await appendFile(join(crashed, "anchors.jsonl"), torn);
      const trail = await reopen(crashed);
      await trail.append(eventOf());
      await trail.close();
      expect(await verifyAudit(crashed)).toMatchObject({ ok: true, entries: 6 });
      const anchors = (await readFile(join(crashed, "anchors.jsonl"), "utf8")).trimEnd().split("\n");
      expect(anchors.map((line) => JSON.parse(line).sequence)).toEqual([3, 6]);
    },
  );

  test("a crash right after the first opening leaves a folder that opens", async () => {
    const folder = await temporaryFolder();
    const trail = await FileAuditTrail.open({ folder, durability: "before-reply" });
    const crashed = await crashCopy(folder, join(await temporaryFolder(), "crashed"));
    await trail.close();
    const again = await reopen(crashed);
    expect(again.trailId).toBe(trail.trailId);
    await again.append(eventOf());
    await again.close();
    expect(await verifyAudit(crashed)).toMatchObject({ ok: true, entries: 1 });
  });

  test("the chain goes on when all older segments were archived elsewhere", async () => {
    const crashed = await crashedTrail(5);
    const [first] = await segmentFiles(crashed);
    const last = JSON.parse((await readFile(join(crashed, first!), "utf8")).trimEnd().split("\n").at(-1)!);
    await rm(join(crashed, first!));
    const trail = await reopen(crashed);
    await trail.append(eventOf());
    await trail.close();
    const startAfter = { sequence: last.sequence, hash: last.hash };
    expect(await verifyAudit(crashed, { startAfter })).toMatchObject({
      ok: true,
      entries: 3,
      head: { sequence: 6 },
    });
  });
});

describe("reopening refuses what no crash can have done, and leaves it as it is", () => {
  const damages: [string, RegExp, (folder: string, files: readonly string[]) => Promise<void>][] = [
    [
      "a changed entry in the last segment",
      /line 1: entry 4 was edited/,
      async (folder, files) => {
        const path = join(folder, files[1]!);
        await writeFile(path, (await readFile(path, "utf8")).replace("trace-4", "trace-X"));
      },
    ],
    [
      "an incomplete line with more lines after it",
      /line 2: entry 5: the line is not an entry/,
      async (folder, files) => {
        const path = join(folder, files[1]!);
        const lines = (await readFile(path, "utf8")).split("\n");
        await writeFile(path, lines.with(1, lines[1]!.slice(0, 50)).join("\n"));
      },
    ],
    [
      "a complete line of nonsense at the end",
      /line 3: entry 6: the line is not an entry/,
      (folder, files) => appendFile(join(folder, files[1]!), "nonsense\n"),
    ],
    [
      "a segment before the last that does not lead to it",
      /does not end with entry 3/,
      async (folder, files) => {
        const path = join(folder, files[0]!);
        await truncate(path, (await readFile(path)).length - 1);
      },
    ],
    [
      "entries cut off below an anchor",
      /ends with entry 3, but anchors\.jsonl knows of entry 5/,
      async (folder, files) => {
        await reopen(folder).then((trail) => trail.close());
        await truncate(join(folder, files[1]!), 0);
      },
    ],
    [
      "an anchored last line cut in its middle",
      /ends with entry 4, but anchors\.jsonl knows of entry 5/,
      async (folder, files) => {
        await reopen(folder).then((trail) => trail.close());
        await truncate(join(folder, files[1]!), (await readFile(join(folder, files[1]!))).length - 9);
      },
    ],
    [
      "all segments removed",
      /ends with entry 0, but anchors\.jsonl knows of entry 3/,
      async (folder, files) => {
        for (const file of files) await rm(join(folder, file));
      },
    ],
    [
      "an anchor with another hash",
      /entry 5 has another hash/,
      (folder) => appendFile(join(folder, "anchors.jsonl"), `{"sequence":5,"hash":"${"0".repeat(64)}"}\n`),
    ],
    [
      "nonsense among the anchors",
      /anchors\.jsonl line 2 is not an anchor/,
      (folder) => appendFile(join(folder, "anchors.jsonl"), "x\n"),
    ],
    ["anchors removed", /anchors\.jsonl is missing/, (folder) => rm(join(folder, "anchors.jsonl"))],
    ["the trail's id removed", /segments but no trail\.json/, (folder) => rm(join(folder, "trail.json"))],
    [
      "the trail's id damaged",
      /does not describe an audit trail/,
      (folder) => writeFile(join(folder, "trail.json"), "{}"),
    ],
    [
      "an empty last segment whose beginning nobody knows",
      /nothing tells the hash of entry 98/,
      async (folder, files) => {
        for (const file of files) await rm(join(folder, file));
        await writeFile(join(folder, "anchors.jsonl"), "");
        await writeFile(join(folder, "audit-000000000099.jsonl"), "");
      },
    ],
  ];

  test.each(damages)("%s", async (_, message, damage) => {
    const folder = await crashedTrail(5);
    const files = await segmentFiles(folder);
    await damage(folder, files);
    const left = await Promise.all(
      (await segmentFiles(folder)).map((file) => readFile(join(folder, file), "utf8")),
    );
    await expect(reopen(folder)).rejects.toMatchObject({
      code: "AUDIT_DAMAGED",
      message: expect.stringMatching(message),
    });
    const after = await Promise.all(
      (await segmentFiles(folder)).map((file) => readFile(join(folder, file), "utf8")),
    );
    expect(after).toEqual(left);
    await expect(reopen(folder), "the lock was given back").rejects.toMatchObject({ code: "AUDIT_DAMAGED" });
  });

  test("a folder that cannot be listed is a clear error", async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, "trail.json"));
    await expect(reopen(folder)).rejects.toMatchObject({ code: "AUDIT_READ_FAILED" });
  });
});
