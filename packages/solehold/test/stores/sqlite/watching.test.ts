/** News between processes and within one. The kit has the common cases; these are the embedded store's own. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ManualEnv, realEnv } from "../../../src/env/index.ts";
import type { LeaseStore, StoreEvent } from "../../../src/store/index.ts";
import type { Boot } from "../../../src/stores/sqlite/boot.ts";
import { loadLmdb, openDatabases } from "../../../src/stores/sqlite/database.ts";
import { openEmbeddedStore } from "../../../src/stores/sqlite/index.ts";
import { LOOK_MS } from "../../../src/stores/sqlite/journal.ts";
import { openWithSeams } from "../../../src/stores/sqlite/open.ts";
import { memberKey, memberLine } from "../../../src/stores/sqlite/state.ts";
import { corruptValue } from "./damage.ts";
import {
  afterThisTest,
  Child,
  closing,
  keyNamed,
  putApplied,
  recordNamed,
  temporaryFolder,
} from "./fixtures.ts";

const testBoot = (): Boot => ({ id: "id:test", aheadMs: 0 });
const EVERYTHING = { tenant: null, prefix: "" } as const;

/** What a watch heard, and waiting for more of it. */
class Ear {
  readonly events: StoreEvent[] = [];
  #wake: () => void = () => undefined;

  static async on(store: LeaseStore): Promise<Ear> {
    const ear = new Ear();
    await store.watch!(EVERYTHING, (event) => {
      ear.events.push(event);
      ear.#wake();
    });
    return ear;
  }

  async hears(fits: (event: StoreEvent) => boolean): Promise<StoreEvent> {
    for (;;) {
      const event = this.events.find(fits);
      if (event !== undefined) return event;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  changed(name: string): Promise<StoreEvent> {
    return this.hears((event) => event.kind === "changed" && event.key.name === name);
  }
}

describe("watching in a process", () => {
  it("a watcher hears of a change when who made it has its answer and could pass it on", async () => {
    const store = closing(await openEmbeddedStore({ folder: join(temporaryFolder(), "store") }));
    const order: string[] = [];
    const heard = new Promise<void>((resolve) => {
      void store.watch!(EVERYTHING, () => {
        order.push("news");
        resolve();
      });
    });
    const next = recordNamed("job");
    await store.apply([{ key: next.key, expected: null, next }]).then((reply) => {
      // As a server sends its answers: all of a turn together.
      realEnv.defer(() => order.push(`answer: ${reply.results[0]?.kind}`));
    });
    await heard;
    expect(order).toEqual(["answer: applied", "news"]);
  });
});

describe("watching across processes", () => {
  it("a watcher hears of another process's create, update and delete, with the record", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = closing(await openEmbeddedStore({ folder }));
    const watcher = new Child("watcher.mjs", [folder]);
    await watcher.line((line) => line === "watching");
    const first = await putApplied(store, recordNamed("job", { holder: "one" }));
    await watcher.line((line) => line === "changed job one");
    const second = await putApplied(store, recordNamed("job", { holder: "two" }), first);
    await watcher.line((line) => line === "changed job two");
    await store.apply([{ key: keyNamed("job"), expected: second, next: null }]);
    await watcher.line((line) => line === "changed job deleted");
    expect(watcher.lines).not.toContain("reset");
  });

  it("this process hears of another process's writes", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = closing(await openEmbeddedStore({ folder }));
    const ear = await Ear.on(store);
    const writer = new Child("writer.mjs", [folder, "other"]);
    const event = await ear.changed("other/1");
    expect(event).toMatchObject({ record: { holder: `process-${writer.process.pid}` } });
  });

  it("a watcher that was killed is forgotten: its sign of life runs out and no journal is kept for it", async () => {
    const folder = join(temporaryFolder(), "store");
    const watcher = new Child("watcher.mjs", [folder]);
    await watcher.line((line) => line === "watching");
    await watcher.kill();
    const world = await sameMachineLater(folder, 0);
    await putApplied(world.store, recordNamed("while-it-counts"));
    expect(await world.journalLength()).toBe(1);
    await world.env.advance(31_000);
    await putApplied(world.store, recordNamed("when-it-does-not"));
    expect(await world.journalLength()).toBe(1);
  });

  it("keeps no journal for watchers of its own, and keeps one as soon as somebody else watches as well", async () => {
    const folder = join(temporaryFolder(), "store");
    const world = await sameMachineLater(folder, 0);
    const own = await Ear.on(world.store);
    await putApplied(world.store, recordNamed("alone"));
    await own.changed("alone");
    expect(await world.journalLength()).toBe(0);
    const another = closing(await openWithSeams({ folder, env: world.env }, {}));
    const ear = await Ear.on(another);
    await world.env.advance(LOOK_MS);
    await putApplied(world.store, recordNamed("in-company"));
    await ear.changed("in-company");
    await own.changed("in-company");
    expect(await world.journalLength()).toBe(1);
    // The other way round, too: neither sign of life has covered the other.
    await putApplied(another, recordNamed("answer"));
    await own.changed("answer");
    expect(own.events.map(({ kind }) => kind)).not.toContain("reset");
  });

  it("a listener that throws keeps nobody else from hearing", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = closing(await openEmbeddedStore({ folder }));
    const mistakes: unknown[] = [];
    const onMistake = (error: unknown): void => void mistakes.push(error);
    process.prependListener("uncaughtException", onMistake);
    const others = process.rawListeners("uncaughtException").filter((listener) => listener !== onMistake);
    for (const listener of others) process.off("uncaughtException", listener as never);
    try {
      await store.watch(EVERYTHING, () => {
        throw new Error("a listener's mistake");
      });
      const ear = await Ear.on(store);
      await putApplied(store, recordNamed("job"));
      await ear.changed("job");
      await new Promise((resolve) => setImmediate(resolve));
      expect(mistakes).toHaveLength(1);
    } finally {
      for (const listener of others) process.on("uncaughtException", listener as never);
      process.off("uncaughtException", onMistake);
    }
  });

  it("a commit that was under way when the watch began shows as a reset, never as silence", async () => {
    const folder = join(temporaryFolder(), "store");
    const env = new ManualEnv();
    const store = closing(await openWithSeams({ folder, env }, { readBoot: testBoot, bell: "deaf" }));
    const ear = await Ear.on(store);
    const databases = openDatabases(await loadLmdb(), folder);
    afterThisTest(() => databases.root.close());
    // What a process leaves behind that queued its transaction before anybody watched: no journal entry.
    const line = memberLine({ epoch: 1, markMs: store.now(), sequence: 1 });
    await databases.root.put(memberKey("late"), line);
    await env.advance(1_000);
    expect(ear.events).toEqual([{ kind: "reset" }]);
    await env.advance(5_000);
    expect(ear.events).toHaveLength(1);
  });

  it("a write by someone who looked for watchers just before shows as a reset at the first look", async () => {
    const folder = join(temporaryFolder(), "store");
    const env = new ManualEnv();
    const seams = { readBoot: testBoot } as const;
    const writer = closing(await openWithSeams({ folder, env }, seams));
    const watcher = closing(await openWithSeams({ folder, env }, seams));
    await putApplied(writer, recordNamed("before"));
    const ear = await Ear.on(watcher);
    await putApplied(writer, recordNamed("unannounced"));
    expect(ear.events).toEqual([]);
    await env.advance(LOOK_MS + 3);
    expect(ear.events).toEqual([{ kind: "reset" }]);
    await putApplied(writer, recordNamed("announced"));
    await ear.changed("announced");
    expect(ear.events.map(({ kind }) => kind)).toEqual(["reset", "changed"]);
  });

  it("a watcher that fell behind by more than the journal holds is told to look at everything", async () => {
    const folder = join(temporaryFolder(), "store");
    const env = new ManualEnv();
    const seams = { readBoot: testBoot, bell: "deaf" } as const;
    const watcher = closing(await openWithSeams({ folder, env }, seams));
    const writer = closing(await openWithSeams({ folder, env }, seams));
    const ear = await Ear.on(watcher);
    for (let index = 0; index < 1_100; index += 1) await putApplied(writer, recordNamed(`n/${index}`));
    await env.advance(1_000);
    await ear.hears(({ kind }) => kind === "reset");
    ear.events.length = 0;
    await putApplied(writer, recordNamed("after"));
    await env.advance(1_000);
    await ear.changed("after");
    expect(ear.events.map(({ kind }) => kind)).toEqual(["changed"]);
  });

  it("the bell is enough: news comes while every timer stands still", async () => {
    const folder = join(temporaryFolder(), "store");
    const env = new ManualEnv();
    const watcher = closing(await openWithSeams({ folder, env }, { readBoot: testBoot }));
    const writer = closing(await openWithSeams({ folder, env }, { readBoot: testBoot }));
    const ear = await Ear.on(watcher);
    for (const name of ["first", "second", "third"]) {
      await putApplied(writer, recordNamed(name));
      await ear.changed(name);
    }
  });

  it("where files cannot be watched, news comes by polling", async () => {
    const folder = join(temporaryFolder(), "store");
    const watcher = closing(await openWithSeams({ folder }, { bell: "deaf" }));
    const writer = closing(await openEmbeddedStore({ folder }));
    const ear = await Ear.on(watcher);
    await putApplied(writer, recordNamed("polled"));
    await ear.changed("polled");
  });

  it("a record that cannot be read makes watchers look, instead of seeming deleted", async () => {
    const folder = join(temporaryFolder(), "store");
    const watcher = closing(await openWithSeams({ folder }, { bell: "deaf" }));
    const writer = closing(await openEmbeddedStore({ folder }));
    await putApplied(writer, recordNamed("bad"));
    await corruptValue(folder, keyNamed("bad"));
    const ear = await Ear.on(watcher);
    // A refused write is in the journal, too, and the reader finds the damaged value.
    await writer.apply([{ key: keyNamed("bad"), expected: null, next: recordNamed("bad") }]);
    await ear.hears(({ kind }) => kind === "reset");
    expect(ear.events.some(({ kind }) => kind === "changed")).toBe(false);
  });

  it("a store that nobody watches any more has no timers left", async () => {
    const folder = join(temporaryFolder(), "store");
    const env = new ManualEnv();
    const store = closing(await openWithSeams({ folder, env }, { readBoot: testBoot }));
    const watches = [
      await store.watch(EVERYTHING, () => undefined),
      await store.watch(EVERYTHING, () => undefined),
    ];
    expect(env.pendingTimers).toBe(1);
    await watches[0]!.close();
    expect(env.pendingTimers).toBe(1);
    await watches[1]!.close();
    await watches[1]!.close();
    expect(env.pendingTimers).toBe(0);
  });
});

/** This machine's boot and clocks, from now on under the test's control. */
async function sameMachineLater(folder: string, laterMs: number) {
  const env = new ManualEnv({ monotonicMs: realEnv.monotonicMs() + laterMs, wallMs: realEnv.wallMs() });
  const store = closing(await openWithSeams({ folder, env }, {}));
  const journalLength = async (): Promise<number> => {
    const databases = openDatabases(await loadLmdb(), folder);
    const length = [...databases.changes.getKeys()].length;
    await databases.root.close();
    return length;
  };
  return { env, store, journalLength };
}
