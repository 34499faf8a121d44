import fc from "fast-check";
import { expect, it } from "vitest";
import type { Lease } from "../src/live/data/api.ts";
import { SortedLeases } from "../src/live/data/sorted-leases.ts";

const lease = (name: string, fence: string): Lease => ({ name, fence }) as Lease;

it("leases are what a map would hold, in order of their names, whatever comes and goes", () => {
  const name = fc.constantFrom(..."abcdefgh");
  const change = fc.oneof(
    fc.record({ kind: fc.constant("put" as const), name, fence: fc.string() }),
    fc.record({ kind: fc.constant("delete" as const), name }),
  );
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
      const sorted = new SortedLeases();
      const model = new Map<string, Lease>();
      for (const each of changes) {
        if (each.kind === "delete") {
          sorted.delete(each.name);
          model.delete(each.name);
        } else {
          sorted.put(lease(each.name, each.fence));
          model.set(each.name, lease(each.name, each.fence));
        }
        expect(sorted.get(each.name)).toEqual(model.get(each.name));
      }
      const expected = [...model.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
      expect([sorted.all, sorted.size]).toEqual([expected, expected.length]);
    }),
  );
});
