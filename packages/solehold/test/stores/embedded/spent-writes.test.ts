/** That what was written does not stay in memory by way of LMDB's own books, and that nothing else is touched. */
import { join } from "node:path";
import type { RootDatabase } from "lmdb";
import { describe, expect, it } from "vitest";
import { loadLmdb, openDatabases } from "../../../src/stores/embedded/database.ts";
import { cutSpentWrites } from "../../../src/stores/embedded/spent-writes.ts";
import { afterThisTest, keyNamed, temporaryFolder } from "./fixtures.ts";

interface Link {
  next: unknown;
}

describe("a write that was answered", () => {
  it("points to no later one after the next commit, so that it cannot keep them in memory", async () => {
    const databases = openDatabases(await loadLmdb(), join(temporaryFolder(), "store"));
    afterThisTest(() => databases.root.close());
    const firsts: Link[] = [];
    databases.root.on("aftercommit", ({ next }: { next: Link }) => firsts.push(next));
    for (let round = 1; round <= 4; round += 1) {
      const keys = ["a", "b", "c"].map((name) => keyNamed(`${name}/${round}`));
      const done = await Promise.all(keys.map((key) => databases.records.put(key, "value", round, null)));
      expect(done).toEqual([true, true, true]);
      expect(await databases.records.put(keyNamed("a/1"), "other", 9, 8)).toBe(false);
    }
    const [latest, ...earlier] = firsts.reverse();
    expect(earlier.length).toBeGreaterThanOrEqual(7);
    expect(earlier.map(({ next }) => next)).toEqual(earlier.map(() => null));
    expect(latest?.next).not.toBeNull();
  });

  it("is left alone by what does not know its books", () => {
    let committed: (event: unknown) => void = () => undefined;
    const root = {
      on: (_: string, callback: (event: unknown) => void) => {
        committed = callback;
      },
    };
    cutSpentWrites(root as unknown as RootDatabase<string, string>);
    const unknown: Link = { next: "later" };
    for (const event of [undefined, { next: unknown }, { next: null }, { next: 7 }, {}]) committed(event);
    expect(unknown.next).toBe("later");
  });
});
