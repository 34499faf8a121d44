/** That a commit is answered when it is done, also if the next one was being queued just then. */
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { RootDatabase } from "lmdb";
import { describe, expect, it } from "vitest";
import { loadLmdb, openDatabases } from "../../../src/stores/embedded/database.ts";
import { lookForLateAnswers } from "../../../src/stores/embedded/late-answers.ts";
import { afterThisTest, keyNamed, temporaryFolder } from "./fixtures.ts";

/** Keeps this thread busy, so that LMDB's gets ahead of it. */
function standStill(forMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, forMs);
}

/** Far more than can be committed in the moment between two callbacks. */
const MANY = 20_000;

describe("a commit that is done while the next one is being queued", () => {
  it("is answered when the next one has begun, not when that is done", async () => {
    const databases = openDatabases(await loadLmdb(), join(temporaryFolder(), "store"));
    afterThisTest(() => databases.root.close());
    const { root, records } = databases;
    await records.put(keyNamed("zero"), "value", 1, null);
    let commits = 0;
    root.on("aftercommit", () => {
      commits += 1;
    });
    const first = records.put(keyNamed("first"), "value", 1, null).then(() => commits);
    await nextTurn();
    standStill(200);
    const others = Array.from({ length: MANY }, (_, index) =>
      records.put(keyNamed(`other/${index}`), "value", 1, null),
    );
    expect(await first).toBe(1);
    expect((await Promise.all(others)).every((done) => done)).toBe(true);
    expect(commits).toBe(2);
  });
});

describe("a LMDB that keeps its books in another way", () => {
  it.each([{}, { env: null }, { env: {} }, { env: { startWriting: 7 } }])("is left alone: %j", (unknown) => {
    const heard: string[] = [];
    const root = { ...unknown, on: (event: string) => heard.push(event) };
    lookForLateAnswers(root as unknown as RootDatabase<string, string>);
    expect([heard, "env" in root ? root.env : null]).toEqual([[], "env" in unknown ? unknown.env : null]);
  });
});
