/** Watch events between processes and within one. The kit has the common cases; these are the embedded store's own. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ManualEnv, realEnv } from "../../../src/env/index.ts";
import type { LeaseStore, StoreEvent } from "../../../src/store/index.ts";
import { openEmbeddedStore } from "../../../src/stores/sqlite/index.ts";
import { openWithSeams } from "../../../src/stores/sqlite/open.ts";
import type { Boot } from "../../../src/support/boot.ts";
import { corruptValue, sqlite } from "./damage.ts";
import { Child, closing, keyNamed, putApplied, recordNamed, temporaryFolder } from "./fixtures.ts";

const testBoot = (): Boot => ({ id: "id:test", aheadMs: 0 });
const EVERYTHING = { tenant: null, prefix: "" } as const;

/** The events of a watch, and waiting for more of them. */
class Events {
  readonly all: StoreEvent[] = [];
  #wake: () => void = () => undefined;

  static async of(store: LeaseStore, scope = EVERYTHING): Promise<Events> {
    const events = new Events();
    await store.watch!(scope, (event) => {
      events.all.push(event);
      events.#wake();
    });
    return events;
  }

  async first(fits: (event: StoreEvent) => boolean): Promise<StoreEvent> {
    for (;;) {
      const event = this.all.find(fits);
      if (event !== undefined) return event;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  changed(name: string): Promise<StoreEvent> {
    return this.first((event) => event.kind === "changed" && event.key.name === name);
  }

  get kinds(): string[] {
    return this.all.map(({ kind }) => kind);
  }
}

async function twoStores(): Promise<readonly [LeaseStore, LeaseStore, string, ManualEnv]> {
  const folder = join(temporaryFolder(), "store");
  const env = new ManualEnv();
  const open = async () => closing(await openWithSeams({ folder, env }, { readBoot: testBoot }));
  return [await open(), await open(), folder, env];
}

describe("watching in a process", () => {
  it("an event comes after the answer to the write, when that can be passed on", async () => {
    const store = closing(await openEmbeddedStore({ folder: join(temporaryFolder(), "store") }));
    const order: string[] = [];
    const announced = new Promise<void>((resolve) => {
      void store.watch(EVERYTHING, () => {
        order.push("event");
        resolve();
      });
    });
    const next = recordNamed("job");
    await store.apply([{ key: next.key, expected: null, next }]).then((reply) => {
      // As a server sends its answers: all of a turn together.
      realEnv.defer(() => order.push(`answer: ${reply.results[0]?.kind}`));
    });
    await announced;
    expect(order).toEqual(["answer: applied", "event"]);
  });

  it("an event of an own write comes once, with the record and its version", async () => {
    const [store, other] = await twoStores();
    const events = await Events.of(store);
    const version = await putApplied(store, recordNamed("own", { holder: "me" }));
    expect(await events.changed("own")).toMatchObject({ stored: { version, record: { holder: "me" } } });
    // When that of a later write by another has come, one more of the own write would have come too.
    await putApplied(other, recordNamed("other"));
    await events.changed("other");
    expect(events.all).toHaveLength(2);
  });

  it("a listener that throws keeps the event from nobody else", async () => {
    const store = closing(await openEmbeddedStore({ folder: join(temporaryFolder(), "store") }));
    const mistakes: unknown[] = [];
    const onMistake = (error: unknown): void => void mistakes.push(error);
    process.prependListener("uncaughtException", onMistake);
    const others = process.rawListeners("uncaughtException").filter((listener) => listener !== onMistake);
    for (const listener of others) process.off("uncaughtException", listener as never);
    try {
      await store.watch(EVERYTHING, () => {
        throw new Error("a listener's mistake");
      });
      const events = await Events.of(store);
      await putApplied(store, recordNamed("job"));
      await events.changed("job");
      await new Promise((resolve) => setImmediate(resolve));
      expect(mistakes).toHaveLength(1);
    } finally {
      for (const listener of others) process.on("uncaughtException", listener as never);
      process.off("uncaughtException", onMistake);
    }
  });
});

describe("watching across processes", () => {
  it("every create, update and delete of another process is announced, with the record", async () => {
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

  it("this process gets events of another process's writes", async () => {
    const folder = join(temporaryFolder(), "store");
    const store = closing(await openEmbeddedStore({ folder }));
    const events = await Events.of(store);
    const writer = new Child("writer.mjs", [folder, "other"]);
    const event = await events.changed("other/1");
    expect(event).toMatchObject({ stored: { record: { holder: `process-${writer.process.pid}` } } });
  });

  it("the marker file is enough: events come while every timer stands still", async () => {
    const [watched, writer] = await twoStores();
    const events = await Events.of(watched);
    for (const name of ["first", "second", "third"]) {
      const version = await putApplied(writer, recordNamed(name));
      expect(await events.changed(name)).toMatchObject({ stored: { version } });
    }
    expect(events.kinds).toEqual(["changed", "changed", "changed"]);
  });

  it("where files cannot be watched, events come by polling", async () => {
    const folder = join(temporaryFolder(), "store");
    const watched = closing(await openWithSeams({ folder }, { wakeUp: "by timer" }));
    const writer = closing(await openEmbeddedStore({ folder }));
    const events = await Events.of(watched);
    await putApplied(writer, recordNamed("polled"));
    await events.changed("polled");
  });

  it("a watcher that is behind by more changes than are kept has to look at everything, and then goes on", async () => {
    const folder = join(temporaryFolder(), "store");
    const env = new ManualEnv();
    const seams = { readBoot: testBoot, wakeUp: "by timer" } as const;
    const watched = closing(await openWithSeams({ folder, env }, seams));
    const writer = closing(await openWithSeams({ folder, env }, seams));
    const events = await Events.of(watched);
    for (let part = 0; part < 23; part += 1) {
      const writes = Array.from({ length: 1_000 }, (_, index) => {
        const next = recordNamed(`part-${part}/${index}`);
        return { key: next.key, expected: null, next };
      });
      await writer.apply(writes);
    }
    // Old notes of commits are gone.
    expect(Number(sqlite(folder, "SELECT count(*) FROM commits"))).toBeLessThan(25);
    await env.advance(1_000);
    await events.first(({ kind }) => kind === "reset");
    expect(events.all).toHaveLength(1);
    await putApplied(writer, recordNamed("after"));
    await env.advance(1_000);
    await events.changed("after");
    expect(events.kinds).toEqual(["reset", "changed"]);
  });

  it("a record that cannot be read is announced as corrupt, never as deleted", async () => {
    const folder = join(temporaryFolder(), "store");
    const env = new ManualEnv();
    const seams = { readBoot: testBoot, wakeUp: "by timer" } as const;
    const watched = closing(await openWithSeams({ folder, env }, seams));
    const writer = closing(await openWithSeams({ folder, env }, seams));
    const events = await Events.of(watched);
    await putApplied(writer, recordNamed("bad"));
    await corruptValue(folder, keyNamed("bad"));
    await env.advance(1_000);
    expect(await events.changed("bad")).toMatchObject({ stored: { kind: "corrupt" } });
  });

  it("a store that nobody watches any more has no timers left", async () => {
    const [store, , , env] = await twoStores();
    const watches = [
      await store.watch!(EVERYTHING, () => undefined),
      await store.watch!(EVERYTHING, () => undefined),
    ];
    expect(env.pendingTimers).toBe(1);
    await watches[0]!.close();
    expect(env.pendingTimers).toBe(1);
    await watches[1]!.close();
    await watches[1]!.close();
    expect(env.pendingTimers).toBe(0);
    const events = await Events.of(store);
    await putApplied(store, recordNamed("again"));
    await events.changed("again");
  });
});
