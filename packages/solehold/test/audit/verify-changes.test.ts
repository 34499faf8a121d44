/** verifyAudit finds any single change of a log, whatever was done to hide it, and names the first entry it touches. */
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AuditEntry, AuditEvent, AuditHead } from "../../src/audit/index.ts";
import { encodeEntry, MemoryAuditTrail, verifyAudit } from "../../src/audit/index.ts";
import { anyEvent, eventOf, withFolder } from "./support.ts";

interface Log {
  readonly lines: readonly string[];
  readonly entries: readonly AuditEntry[];
  readonly head: AuditHead;
}

const TRAIL_ID = "mutated";

async function logOf(events: readonly AuditEvent[]): Promise<Log> {
  const trail = new MemoryAuditTrail({ capacity: 1000, trailId: TRAIL_ID });
  for (const event of events) trail.append(event);
  const entries = await trail.query({ limit: 1000 });
  return { lines: entries.map(encodeEntry), entries, head: trail.head() };
}

/** Puts the lines into a folder, as one segment of a trail that was closed with this head. */
async function writeFolder(folder: string, content: Buffer, head: AuditHead): Promise<void> {
  await writeFile(join(folder, "trail.json"), `{"format":"solehold-audit-1","trailId":"${TRAIL_ID}"}\n`);
  await writeFile(join(folder, "anchors.jsonl"), `{"sequence":${head.sequence},"hash":"${head.hash}"}\n`);
  await writeFile(join(folder, "audit-000000000001.jsonl"), content);
}

const rehash = (line: string): string => {
  const body = `${line.slice(0, -75)}}`;
  return `${body.slice(0, -1)},"hash":"${createHash("sha256").update(body).digest("hex")}"}`;
};

const contentOf = (lines: readonly string[]): Buffer =>
  Buffer.from(lines.map((line) => `${line}\n`).join(""));

const someEvents = fc.array(anyEvent, { minLength: 2, maxLength: 12 });

/** A log, and two different positions in it in ascending order. */
const logAndPlaces = someEvents.chain((events) =>
  fc.tuple(
    fc.constant(events),
    fc
      .uniqueArray(fc.nat(events.length - 1), { minLength: 2, maxLength: 2 })
      .map((pair) => pair.sort((a, b) => a - b)),
  ),
);

/** Verifies as loose lines and as a folder; both must agree on what and where. */
async function expectFinding(log: Log, lines: readonly string[], entry: number, problem: string | RegExp) {
  const expected = { ok: false, entry, problem: expect.stringMatching(problem) };
  expect(await verifyAudit(lines, { trailId: TRAIL_ID, anchor: log.head })).toMatchObject(expected);
  await withFolder(async (folder) => {
    await writeFolder(folder, contentOf(lines), log.head);
    expect(await verifyAudit(folder)).toMatchObject(expected);
  });
}

describe("verifyAudit finds any single change and names the first entry it touches", () => {
  test("nothing is found in an untouched log", async () => {
    await fc.assert(
      fc.asyncProperty(someEvents, async (events) => {
        const log = await logOf(events);
        const proven = { ok: true, entries: events.length, head: log.head };
        expect(await verifyAudit(log.lines, { trailId: TRAIL_ID, anchor: log.head })).toEqual(proven);
        await withFolder(async (folder) => {
          await writeFolder(folder, contentOf(log.lines), log.head);
          expect(await verifyAudit(folder, { anchor: log.head })).toEqual(proven);
        });
      }),
      { numRuns: 30 },
    );
  });

  test("an edited field", async () => {
    const change = fc.constantFrom<Partial<AuditEntry>>(
      { at: 1 },
      { key: "changed!" },
      { holder: "changed!" },
      { allowed: "changed!" as never },
      { fence: "1234567890" },
      { detail: { changed: "!" } },
      { sequence: 999 },
      { previousHash: "0".repeat(64) },
      { hash: "0".repeat(64) },
    );
    await fc.assert(
      fc.asyncProperty(logAndPlaces, change, async ([events, [place = 0]], changes) => {
        const log = await logOf(events);
        const edited = encodeEntry({ ...log.entries[place]!, ...changes });
        fc.pre(edited !== log.lines[place]);
        await expectFinding(log, log.lines.with(place, edited), place + 1, "edited");
      }),
      { numRuns: 100 },
    );
  });

  test("an edited field whose hash was made to fit: the next entry no longer follows", async () => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, async ([events, [place = 0]]) => {
        const log = await logOf(events);
        const forged = rehash(encodeEntry({ ...log.entries[place]!, key: "forged!" }));
        fc.pre(forged !== log.lines[place]);
        await expectFinding(log, log.lines.with(place, forged), place + 2, "unlinked");
      }),
      { numRuns: 50 },
    );
  });

  test("an edit with every later hash made to fit: the anchor remembers another", async () => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, async ([events, [place = 0]]) => {
        const log = await logOf(events);
        const forged = await logOf(events.with(place, { ...events[place]!, key: "forged!" }));
        fc.pre(forged.head.hash !== log.head.hash);
        await expectFinding(log, forged.lines, log.head.sequence, "rewritten");
      }),
      { numRuns: 30 },
    );
  });

  test("a dropped entry", async () => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, async ([events, [place = 0]]) => {
        const log = await logOf(events);
        await expectFinding(log, log.lines.toSpliced(place, 1), place + 1, "missing");
      }),
      { numRuns: 50 },
    );
  });

  test("two entries that changed places", async () => {
    await fc.assert(
      fc.asyncProperty(logAndPlaces, async ([events, [first = 0, second = 0]]) => {
        const log = await logOf(events);
        const swapped = log.lines.with(first, log.lines[second]!).with(second, log.lines[first]!);
        await expectFinding(log, swapped, first + 1, "reordered");
      }),
      { numRuns: 50 },
    );
  });

  test("an entry repeated anywhere", async () => {
    await fc.assert(
      fc.asyncProperty(someEvents, fc.nat(), fc.nat(), async (events, from, to) => {
        const log = await logOf(events);
        const place = from % events.length;
        const target = to % (events.length + 1);
        const repeated = log.lines.toSpliced(target, 0, log.lines[place]!);
        const early = target < place;
        const entry = target === place ? place + 2 : target + 1;
        await expectFinding(log, repeated, entry, early ? "reordered" : "duplicated");
      }),
      { numRuns: 100 },
    );
  });

  test("a truncation below the anchored head", async () => {
    await fc.assert(
      fc.asyncProperty(someEvents, fc.nat(), async (events, at) => {
        const log = await logOf(events);
        const length = at % events.length;
        await expectFinding(log, log.lines.slice(0, length), length + 1, "truncated");
      }),
      { numRuns: 50 },
    );
  });

  test("an inserted line: nonsense, blank, of another trail, or forged to fit its place", async () => {
    await fc.assert(
      fc.asyncProperty(
        logAndPlaces,
        fc.constantFrom("nonsense", "", " ", "{}", "null"),
        async ([events, [place = 0]], line) => {
          const log = await logOf(events);
          await expectFinding(log, log.lines.toSpliced(place, 0, line), place + 1, "garbage");
          const { previousHash, sequence } = log.entries[place]!;
          const forged = rehash(encodeEntry({ ...log.entries[0]!, key: "forged!", sequence, previousHash }));
          await expectFinding(log, log.lines.toSpliced(place, 0, forged), place + 1, "forked");
          const foreign = rehash(encodeEntry({ ...log.entries[place]!, previousHash: "ab".repeat(32) }));
          await expectFinding(log, log.lines.toSpliced(place, 0, foreign), place + 1, "unlinked");
        },
      ),
      { numRuns: 30 },
    );
  });

  test("any byte changed to any other, line feeds included", async () => {
    await fc.assert(
      fc.asyncProperty(
        someEvents,
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        async (events, position, mask) => {
          const log = await logOf(events);
          const content = contentOf(log.lines);
          const at = position % content.length;
          const entry = content.subarray(0, at).filter((byte) => byte === 0x0a).length + 1;
          content[at] = content[at]! ^ mask;
          await withFolder(async (folder) => {
            await writeFolder(folder, content, log.head);
            expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry, line: entry });
          });
        },
      ),
      { numRuns: 250 },
    );
  });

  test("a line feed in the place of another byte", async () => {
    const log = await logOf([eventOf({ key: "�" }), eventOf({ allowed: false })]);
    const content = contentOf(log.lines);
    await withFolder(async (folder) => {
      for (let at = 0; at < content.length; at += 5) {
        if (content[at] === 0x0a) continue;
        const broken = Buffer.from(content);
        broken[at] = 0x0a;
        await writeFolder(folder, broken, log.head);
        const entry = at > content.indexOf(0x0a) ? 2 : 1;
        expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry });
      }
    });
  });

  test("a cut at any byte of the last line, also when no anchor knows better", async () => {
    const log = await logOf([eventOf(), eventOf({ action: "renew" })]);
    const content = contentOf(log.lines);
    await withFolder(async (folder) => {
      for (let length = content.indexOf(0x0a); length < content.length; length++) {
        const complete = content.subarray(0, length).filter((byte) => byte === 0x0a).length;
        await writeFolder(folder, content.subarray(0, length), log.head);
        expect(await verifyAudit(folder)).toMatchObject({
          ok: false,
          entry: complete + 1,
          problem: "truncated",
        });
        const atLineEnd = length === 0 || content[length - 1] === 0x0a;
        await writeFile(join(folder, "anchors.jsonl"), "");
        const unanchored = atLineEnd
          ? { ok: true, entries: complete }
          : { ok: false, entry: complete + 1, problem: "torn" };
        expect(await verifyAudit(folder)).toMatchObject(unanchored);
      }
    });
  });

  test("a character that decodes alike but has other bytes", async () => {
    const log = await logOf([eventOf({ key: "�" })]);
    const content = contentOf(log.lines);
    content[content.indexOf(0xef)] = 0xf0;
    expect(content.toString("utf8")).toBe(contentOf(log.lines).toString("utf8"));
    await withFolder(async (folder) => {
      await writeFolder(folder, content, log.head);
      expect(await verifyAudit(folder)).toMatchObject({ ok: false, entry: 1, problem: "edited" });
    });
  });
});
