/** Which commit a call is for, by what commits cost. The events are those of LMDB, played by hand. */

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ManualEnv } from "../../../src/env/index.ts";
import type { Databases } from "../../../src/stores/embedded/database.ts";
import { openEmbeddedStore } from "../../../src/stores/embedded/index.ts";
import { Turns } from "../../../src/stores/embedded/turns.ts";
import { closing, keyNamed, recordNamed, temporaryFolder } from "./fixtures.ts";

const WRITES = 32;

function newTurns() {
  const env = new ManualEnv();
  const listeners = new Map<string, () => void>();
  const root = { on: (event: string, listener: () => void) => void listeners.set(event, listener) };
  const turns = new Turns({ root } as unknown as Databases, env);
  const begin = (): void => listeners.get("beforecommit")?.();
  const done = (): void => listeners.get("aftercommit")?.();
  const commit = async (tookMs: number): Promise<void> => {
    const noted = turns.note(WRITES);
    begin();
    await env.advance(tookMs);
    done();
    turns.settle(noted, WRITES);
  };
  return { env, turns, begin, done, commit };
}

describe("the second of two calls in one turn", () => {
  it("is for the next turn where a commit takes next to nothing", async () => {
    const { turns, commit } = newTurns();
    await commit(0.35);
    turns.note(WRITES);
    expect([turns.isForNext(WRITES), turns.isForLater(WRITES)]).toEqual([true, false]);
    expect([turns.isForNext(2), turns.isForLater(2)]).toEqual([false, false]);
  });

  it("waits where a commit takes a while, and goes on as soon as the first is done", async () => {
    const { turns, commit, begin, done } = newTurns();
    await commit(0.7);
    const first = turns.note(WRITES);
    expect([turns.isForNext(WRITES), turns.isForLater(WRITES)]).toEqual([false, true]);
    const steps: string[] = [];
    const waiting = turns.answers().then(() => steps.push("second queued", String(turns.note(WRITES).count)));
    begin();
    await Promise.resolve();
    expect([steps, turns.isForAnother(WRITES)]).toEqual([[], false]);
    done();
    await waiting;
    turns.settle(first, WRITES);
    expect([steps, turns.isForAnother(WRITES)]).toEqual([["second queued", "32"], true]);
    const begun = turns.next().then(() => steps.push("first answered"));
    begin();
    await begun;
    expect([steps.at(-1), turns.isForAnother(WRITES)]).toEqual(["first answered", false]);
  });

  it("shares the commit of the first where a commit costs more than two calls are worth", async () => {
    const { turns, commit, begin } = newTurns();
    await commit(5);
    turns.note(WRITES);
    expect([turns.isForNext(WRITES), turns.isForLater(WRITES)]).toEqual([false, false]);
    begin();
    expect([turns.isForNext(WRITES), turns.isForLater(WRITES)]).toEqual([false, true]);
  });

  it("is judged by what commits cost on average: one quick one on a slow disk changes nothing", async () => {
    const { turns, commit } = newTurns();
    await commit(5);
    await commit(0.7);
    turns.note(WRITES);
    expect([turns.isForNext(WRITES), turns.isForLater(WRITES)]).toEqual([false, false]);
    for (let times = 0; times < 20; times += 1) await commit(0.7);
    turns.note(WRITES);
    expect(turns.isForLater(WRITES)).toBe(true);
  });

  it("is not judged by a commit that was answered together with the one before", async () => {
    const { turns, commit, begin } = newTurns();
    await commit(0.7);
    await commit(0.01);
    turns.note(WRITES);
    expect(turns.isForLater(WRITES)).toBe(true);
    begin();
  });
});

describe("calls that have nothing to queue", () => {
  it("keep nobody waiting for a commit that never begins", async () => {
    const store = closing(await openEmbeddedStore({ folder: join(temporaryFolder(), "store") }));
    const deletes = Array.from({ length: 20 }, (_, index) => keyNamed(`absent/${index}`));
    const gone = await store.apply(deletes.map((key) => ({ key, expected: null, next: null })));
    expect(gone.results.every(({ kind }) => kind === "applied")).toBe(true);
    const records = deletes.map(({ name }) => recordNamed(name));
    const made = await store.apply(records.map((next) => ({ key: next.key, expected: null, next })));
    expect(made.results.every(({ kind }) => kind === "applied")).toBe(true);
  });
});

describe("many calls in one turn, over and over", () => {
  it("are all answered, whatever commits seem to cost", async () => {
    for (const stepMs of [0.001, 0.05, 0.1, 0.3, 1, 10]) {
      const env = new ManualEnv();
      let nowMs = 1_000;
      env.monotonicMs = () => {
        nowMs += stepMs;
        return nowMs;
      };
      const folder = join(temporaryFolder(), "store");
      const store = closing(await openEmbeddedStore({ folder, env }));
      const lane = async (number: number): Promise<void> => {
        let versions: (string | null)[] = Array.from({ length: 20 }, () => null);
        for (let round = 0; round < 20; round += 1) {
          const writes = versions.map((expected, index) => {
            const next = recordNamed(`lane/${number}/${index}`, { renewals: round });
            return { key: next.key, expected, next };
          });
          const { results } = await store.apply(writes);
          versions = results.map((result) => (result.kind === "applied" ? result.version : "not applied"));
        }
        expect(versions).not.toContain("not applied");
      };
      await Promise.all(Array.from({ length: 4 }, (_, number) => lane(number)));
    }
  });
});
