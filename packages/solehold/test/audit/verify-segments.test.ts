/** verifyAudit over a folder: segments and anchors that are missing, swapped or made up, and what it reads of them. */
import { appendFile, copyFile, mkdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { MAX_LINE_BYTES } from "../../src/audit/entry.ts";
import { seal } from "../../src/audit/hash-chain.ts";
import type { AuditEntry, AuditHead } from "../../src/audit/index.ts";
import { FileAuditTrail, genesis, verifyAudit } from "../../src/audit/index.ts";
import { eventOf, segmentFiles, temporaryFolder } from "./support.ts";

describe("verifyAudit over a folder with segments", () => {
  /** 12 entries in segments of at least 3, anchored every 4. */
  async function segmentedTrail(): Promise<{ folder: string; files: readonly string[]; head: AuditHead }> {
    const folder = await temporaryFolder();
    const trail = await FileAuditTrail.open({
      folder,
      durability: "background",
      segmentBytes: 1024,
      anchorEvery: 4,
    });
    for (let index = 0; index < 12; index++) trail.append(eventOf({ traceId: `trace-${index}` }));
    await trail.close();
    const files = await segmentFiles(folder);
    expect(files).toEqual([1, 4, 7, 10].map((first) => `audit-${String(first).padStart(12, "0")}.jsonl`));
    return { folder, files, head: trail.head() };
  }

  test("proves the whole, and the head it was closed with", async () => {
    const { folder, head } = await segmentedTrail();
    expect(await verifyAudit(folder)).toEqual({ ok: true, entries: 12, head });
  });

  test("names the first entry of a segment that is missing in the middle", async () => {
    const { folder, files } = await segmentedTrail();
    await rm(join(folder, files[1]!));
    const expected = { ok: false, entry: 4, file: files[2], line: 1, problem: "missing" };
    expect(await verifyAudit(folder)).toMatchObject(expected);
  });

  test("misses the last segment, the first, and all of them", async () => {
    const { folder, files } = await segmentedTrail();
    await rm(join(folder, files[3]!));
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 10, problem: "truncated" });
    await rm(join(folder, files[0]!));
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 1, problem: "missing" });
    for (const file of files.slice(1, 3)) await rm(join(folder, file));
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 1, problem: "truncated" });
  });

  test("finds a segment that was emptied, swapped, copied or renamed", async () => {
    const { folder, files } = await segmentedTrail();
    const [first, second, third] = files.map((file) => join(folder, file));
    const original = await readFile(second!);
    await truncate(second!, 0);
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 4, problem: "missing" });
    await copyFile(third!, second!);
    expect(await verifyAudit(folder)).toMatchObject({
      ok: false,
      entry: 4,
      file: files[1],
      problem: "missing",
    });
    await copyFile(first!, second!);
    expect(await verifyAudit(folder)).toMatchObject({
      ok: false,
      entry: 4,
      file: files[1],
      problem: "duplicated",
    });
    await writeFile(second!, original);
    await rename(second!, join(folder, "audit-000000000005.jsonl"));
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 4, problem: "misnamed" });
    await rename(join(folder, "audit-000000000005.jsonl"), second!);
    await writeFile(join(folder, "audit-000000000099.jsonl"), "");
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 13, problem: "missing" });
  });

  test("does not take an incomplete line for a crash where the trail goes on after it", async () => {
    const { folder, files } = await segmentedTrail();
    const path = join(folder, files[1]!);
    await truncate(path, (await readFile(path)).length - 1);
    expect(await verifyAudit(folder)).toMatchObject({
      ok: false,
      entry: 6,
      file: files[1],
      line: 3,
      problem: "garbage",
    });
  });

  test("finds that the anchors were removed, unless a head kept elsewhere stands in for them", async () => {
    const { folder, head } = await segmentedTrail();
    await rm(join(folder, "anchors.jsonl"));
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 13, problem: "unanchored" });
    expect(await verifyAudit(folder, { anchor: head })).toMatchObject({ ok: true, entries: 12 });
  });

  test("finds anchors that were edited, reordered or made up", async () => {
    const { folder } = await segmentedTrail();
    const path = join(folder, "anchors.jsonl");
    const anchors = (await readFile(path, "utf8")).trimEnd().split("\n");
    await writeFile(
      path,
      `${anchors
        .with(
          0,
          anchors[0]!.replace(/[0-9a-f]"}$/, (end) => (end[0] === "0" ? '1"}' : '0"}')),
        )
        .join("\n")}\n`,
    );
    const firstAnchored = (JSON.parse(anchors[0]!) as AuditHead).sequence;
    expect(await verifyAudit(folder)).toMatchObject({
      ok: false,
      entry: firstAnchored,
      problem: "rewritten",
    });
    await writeFile(path, `${anchors.toReversed().join("\n")}\n`);
    expect(await verifyAudit(folder)).toMatchObject({
      ok: false,
      file: "anchors.jsonl",
      line: 2,
      problem: "garbage",
    });
    await writeFile(path, `${anchors.join("\n")}\nnonsense\n`);
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, file: "anchors.jsonl", problem: "garbage" });
    await writeFile(path, `${anchors.join("\n")}\n{"sequence":13,"hash":"${"0".repeat(64)}"}\n`);
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 13, problem: "truncated" });
    await writeFile(path, `${anchors.join("\n")}\n{"sequence":13,"ha`);
    expect(await verifyAudit(folder)).toMatchObject({ ok: true, entries: 12 });
  });

  test("finds another trail's id, and a missing one", async () => {
    const { folder } = await segmentedTrail();
    await writeFile(join(folder, "trail.json"), '{"format":"solehold-audit-1","trailId":"other"}');
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 1, problem: "unlinked" });
    await rm(join(folder, "trail.json"));
    expect(await verifyAudit(folder)).toMatchObject({
      ok: false,
      entry: 1,
      file: "trail.json",
      problem: "missing",
    });
  });

  test("proves what is left after older segments were archived, from the head they ended with", async () => {
    const { folder, files, head } = await segmentedTrail();
    const lastArchived = JSON.parse(
      (await readFile(join(folder, files[1]!), "utf8")).trimEnd().split("\n").at(-1)!,
    ) as AuditEntry;
    for (const file of files.slice(0, 2)) await rm(join(folder, file));
    const startAfter = { sequence: lastArchived.sequence, hash: lastArchived.hash };
    expect(await verifyAudit(folder, { startAfter })).toEqual({ ok: true, entries: 6, head });
    const wrong = { sequence: 6, hash: "0".repeat(64) };
    // Where an anchor stands depends on which entries were written together: without one there, the next entry tells.
    const { entry, problem } = {
      entry: 0,
      problem: "none",
      ...(await verifyAudit(folder, { startAfter: wrong })),
    };
    expect(["6: rewritten", "7: unlinked"]).toContain(`${entry}: ${problem}`);
  });

  test("stops at a given entry, so that a writer in mid-write does not disturb", async () => {
    const { folder, files } = await segmentedTrail();
    await appendFile(join(folder, files[3]!), '{"sequence":13,');
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 13, problem: "torn" });
    expect(await verifyAudit(folder, { throughSequence: 12 })).toMatchObject({ ok: true, entries: 12 });
    expect(await verifyAudit(folder, { throughSequence: 5 })).toMatchObject({
      ok: true,
      entries: 5,
      head: { sequence: 5 },
    });
    await truncate(join(folder, files[3]!), 0);
    await writeFile(join(folder, "anchors.jsonl"), "");
    expect(await verifyAudit(folder, { throughSequence: 12 })).toMatchObject({
      ok: false,
      entry: 10,
      problem: "truncated",
    });
  });

  test("a line of any length is read in bounded memory and is no entry", async () => {
    const { folder, files } = await segmentedTrail();
    const path = join(folder, files[1]!);
    await writeFile(
      path,
      Buffer.concat([Buffer.alloc(3_000_000, "x"), Buffer.from("\n"), await readFile(path)]),
    );
    expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 4, line: 1, problem: "garbage" });
    const endless = seal(`"key":"${"x".repeat(MAX_LINE_BYTES)}"`, genesis("t")).line;
    expect(await verifyAudit([endless], { trailId: "t" })).toMatchObject({
      ok: false,
      entry: 1,
      problem: "garbage",
    });
  });

  test("a folder without a trail, and no folder at all, are clear errors", async () => {
    const folder = await temporaryFolder();
    await expect(verifyAudit(folder)).rejects.toMatchObject({
      code: "AUDIT_READ_FAILED",
      message: /holds no audit trail/,
    });
    await expect(verifyAudit(join(folder, "absent"))).rejects.toMatchObject({ code: "AUDIT_READ_FAILED" });
    await mkdir(join(folder, "odd"));
    await writeFile(join(folder, "odd", "trail.json"), "{");
    await expect(verifyAudit(join(folder, "odd"))).rejects.toMatchObject({ code: "AUDIT_DAMAGED" });
  });
});
