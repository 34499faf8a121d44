/** Any order of failures, and a loss of power in it: the trail holds what it acknowledged, in order, and verifies. */
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FileAuditTrail, verifyAudit } from "../../src/audit/index.ts";
import type { Operation } from "./support.ts";
import { eventOf, FaultyDisk, openOn, traces, withFolder } from "./support.ts";

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
