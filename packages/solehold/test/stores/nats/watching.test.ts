/** Watching on a real server: which events a watcher gets, over lost connections and restarts too. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { StoreEvent } from "../../../src/store/index.ts";
import { type NatsStore, type NatsStoreOptions, openNatsStore } from "../../../src/stores/nats/index.ts";
import { type Engine, type FaultProxy, startNats, startProxy } from "../../engines/index.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";
import { Admin } from "./admin.ts";

let server: Engine;
let proxy: FaultProxy;
let admin: Admin;
const opened: NatsStore[] = [];

beforeAll(async () => {
  server = await startNats();
  proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
  admin = new Admin(server.url);
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  proxy.heal();
});

afterAll(async () => {
  await proxy?.close();
  await server?.stop();
});

async function open(options: Partial<NatsStoreOptions> = {}): Promise<NatsStore> {
  const store = await openNatsStore({ url: server.url, ...options });
  opened.push(store);
  return store;
}

const everything = { tenant: null, prefix: "" };

/** Events as they come; `next` waits for one that fits, also among those that came already. */
class EventLog {
  readonly events: StoreEvent[] = [];
  #wake: () => void = () => undefined;

  readonly listen = (event: StoreEvent): void => {
    this.events.push(event);
    this.#wake();
  };

  async next(fits: (event: StoreEvent) => boolean): Promise<StoreEvent> {
    let limit: NodeJS.Timeout | undefined;
    const expired = new Promise<never>((_, reject) => {
      limit = setTimeout(() => reject(new Error("the event never came")), 120_000);
    });
    try {
      for (;;) {
        const event = this.events.find(fits);
        if (event !== undefined) return event;
        const woken = new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        await Promise.race([woken, expired]);
      }
    } finally {
      clearTimeout(limit);
    }
  }
}

const about = (name: string) => (event: StoreEvent) => event.kind === "changed" && event.key.name === name;
const isReset = (event: StoreEvent): boolean => event.kind === "reset";

it("a watcher gets a reset after its connection was lost, and events again", async () => {
  const watching = await open({ url: proxy.through(server.url), timeoutMs: 1_000 });
  const writing = await open();
  const log = new EventLog();
  await watching.watch(everything, log.listen);
  proxy.cut();
  await log.next(isReset);
  await create(writing, recordOf("after/cut"));
  await log.next(about("after/cut"));
});

it("a watcher gets a reset after the server was killed, and events again", async () => {
  const watching = await open();
  const log = new EventLog();
  await watching.watch(everything, log.listen);
  await server.kill();
  await server.restart();
  await log.next(isReset);
  await create(await open(), recordOf("after/restart"));
  await log.next(about("after/restart"));
});

it("an event carries what a read shows: the record with its version, an absence, damage", async () => {
  const [watching, writing] = [await open(), await open()];
  const log = new EventLog();
  await watching.watch({ tenant: "default", prefix: "events/" }, log.listen);
  const storedNext = async () => {
    const event = await log.next(about("events/a"));
    log.events.length = 0;
    return event.kind === "changed" ? event.stored : null;
  };
  const record = recordOf("events/a", { holder: "someone" });
  const read = async () => (await writing.read([record.key])).records[0];
  const version = await create(writing, record);
  expect(await storedNext()).toEqual(await read());
  await applyOne(writing, { key: record.key, expected: version, next: null });
  expect(await storedNext()).toEqual({ kind: "absent" });
  await create(writing, record);
  expect(await storedNext()).toMatchObject({ kind: "found", record: { holder: "someone" } });
  const key = (await admin.keys("solehold")).find((each) => each.endsWith(".default.events.a")) ?? "";
  await admin.put("solehold", key, "damage");
  const damaged = await storedNext();
  expect(damaged).toMatchObject({ kind: "corrupt" });
  expect(damaged).toEqual(await read());
});

it("a write that was refused is not announced, nor is what another client reads", async () => {
  const [watching, writing] = [await open(), await open()];
  const log = new EventLog();
  await watching.watch(everything, log.listen);
  await create(writing, recordOf("won"));
  expect((await applyOne(writing, { ...recordOf("won"), expected: null, next: recordOf("won") })).kind).toBe(
    "conflict",
  );
  for (let call = 0; call < 5; call += 1) await writing.read([recordOf("won").key]);
  await create(writing, recordOf("sense"));
  await log.next(about("sense"));
  expect(log.events.map((event) => event.kind === "changed" && event.key.name)).toEqual(["won", "sense"]);
});

it("a watcher that is slow for a while gets every event, in order", async () => {
  const watching = await open({ url: proxy.through(server.url), timeoutMs: 60_000 });
  const writing = await open();
  const log = new EventLog();
  await watching.watch(everything, log.listen);
  proxy.freeze();
  const names = Array.from({ length: 384 }, (_, index) => `slow/${index}`);
  for (let start = 0; start < names.length; start += 128)
    await writing.apply(names.slice(start, start + 128).map((name) => writeOf(recordOf(name))));
  proxy.heal();
  await log.next(about("slow/383"));
  expect(log.events.map((event) => (event.kind === "changed" ? event.key.name : event.kind))).toEqual(names);
});

it("a watcher whose consumer was deleted behind its back gets a reset and goes on", async () => {
  const [watching, writing] = [await open({ bucket: "consumers" }), await open({ bucket: "consumers" })];
  const log = new EventLog();
  await watching.watch(everything, log.listen);
  expect(await admin.deleteConsumers("consumers")).toBe(1);
  await log.next(isReset);
  await create(writing, recordOf("after/deletion"));
  await log.next(about("after/deletion"));
});

it("a store without watchers has no consumer, and a listener that was closed is not called", async () => {
  const store = await open({ bucket: "unwatched" });
  const [closed, kept] = [new EventLog(), new EventLog()];
  const first = await store.watch(everything, closed.listen);
  const second = await store.watch(everything, kept.listen);
  await first.close();
  await create(store, recordOf("one"));
  await kept.next(about("one"));
  expect(closed.events).toEqual([]);
  expect(await admin.consumers("unwatched")).toHaveLength(1);
  await second.close();
  await until("the consumer is gone", async () =>
    (await admin.consumers("unwatched")).length === 0 ? true : null,
  );
});

it("a watch that cannot be set up is an error, and works once the server is there", async () => {
  const store = await open({ url: proxy.through(server.url), timeoutMs: 500 });
  proxy.freeze();
  const refused = await rejection(store.watch(everything, () => undefined));
  expect(refused).toMatchObject({ name: "StoreError", kind: "timeout", outcome: "not-applied" });
  proxy.heal();
  const log = new EventLog();
  await until("the watch is set up", () => store.watch(everything, log.listen));
  await create(await open(), recordOf("late-watch"));
  await log.next(about("late-watch"));
});
