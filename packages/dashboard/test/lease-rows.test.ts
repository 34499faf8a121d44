// Which rows the table has: slots of a name are one line.
import { expect, it } from "vitest";
import type { Lease } from "../src/live/data/api.ts";
import { type Row, rowsOf } from "../src/live/leases/rows.ts";

const NOW = 1_000;
const lease = (slotOf: string, slot: number, state: Lease["state"] = "held"): Lease =>
  ({
    ...{ tenant: "default", name: slot === 0 ? slotOf : `${slotOf}#slot/${slot}`, slotOf, slot, state },
    ...{ holder: `h${slot}`, expiresAtMs: NOW + 1 },
  }) as Lease;

const inWords = (rows: readonly Row[]): readonly string[] =>
  rows.map((row) =>
    row.kind === "slots"
      ? `${row.name} ${row.taken} of ${row.of}`
      : `${row.isSlot ? "- " : ""}${row.lease.name}`,
  );

const CACHE = lease("cache", 0);
const GPU = [lease("gpu", 0), lease("gpu", 2), lease("gpu", 1, "released")];
const ALL = [CACHE, ...GPU, lease("gpu-less", 0)];

it("slots of a name are one row, which says how many are held of those that were seen", () => {
  expect(inWords(rowsOf(ALL, ALL, new Set(), NOW))).toEqual(["cache", "gpu 2 of 3", "gpu-less"]);
  expect(inWords(rowsOf(ALL, ALL, new Set(), NOW + 1))).toEqual(["cache", "gpu 0 of 3", "gpu-less"]);
});

it("an opened row has its slots below it, by their number", () => {
  expect(inWords(rowsOf(ALL, ALL, new Set(["gpu", "cache"]), NOW))).toEqual([
    ...["cache", "gpu 2 of 3", "- gpu", "- gpu#slot/1", "- gpu#slot/2", "gpu-less"],
  ]);
});

it("a filter takes slots away and not the count, and the row stands where its first one would", () => {
  const [, last] = GPU as [Lease, Lease];
  expect(inWords(rowsOf([last, CACHE], ALL, new Set(["gpu"]), NOW))).toEqual([
    ...["gpu 2 of 3", "- gpu#slot/2", "cache"],
  ]);
});
