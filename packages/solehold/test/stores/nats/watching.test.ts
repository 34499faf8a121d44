/** Wake-ups on a real server: what a watcher hears, over lost connections and restarts too. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { StoreEvent } from "../../../src/store/index.ts";
import { type NatsStore, type NatsStoreOptions, openNatsStore } from "../../../src/stores/nats/index.ts";
import { type Engine, type FaultProxy, startNats, startProxy } from "../../engines/index.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";
import { Admin, type Delivery } from "./admin.ts";

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
class Ear {
  readonly heard: StoreEvent[] = [];
  #wake: () => void = () => undefined;

  readonly listen = (event: StoreEvent): void => {
    this.heard.push(event);
    this.#wake();
  };

  async next(fits: (event: StoreEvent) => boolean): Promise<StoreEvent> {
    let patience: NodeJS.Timeout | undefined;
    const tired = new Promise<never>((_, reject) => {
      patience = setTimeout(() => reject(new Error("the news never came")), 8_000);
    });
    try {
      for (;;) {
        const event = this.heard.find(fits);
        if (event !== undefined) return event;
        const woken = new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        await Promise.race([woken, tired]);
      }
    } finally {
      clearTimeout(patience);
    }
  }
}

const about = (name: string) => (event: StoreEvent) => event.kind === "changed" && event.key.name === name;
const isReset = (event: StoreEvent): boolean => event.kind === "reset";

it("a watcher is told to look for itself after its connection was lost, and hears again", async () => {
  const watching = await open({ url: proxy.through(server.url), timeoutMs: 1_000 });
  const writing = await open();
  const ear = new Ear();
  await watching.watch(everything, ear.listen);
  proxy.cut();
  await ear.next(isReset);
  await create(writing, recordOf("after/cut"));
  await ear.next(about("after/cut"));
});

it("a watcher is told to look for itself after the server was killed, and hears again", async () => {
  const watching = await open();
  const ear = new Ear();
  await watching.watch(everything, ear.listen);
  await server.kill();
  await server.restart();
  await ear.next(isReset);
  await create(await open(), recordOf("after/restart"));
  await ear.next(about("after/restart"));
});

it("news carry the record as it is, and null for one that is gone or damaged", async () => {
  const [watching, writing] = [await open(), await open()];
  const ear = new Ear();
  await watching.watch({ tenant: "default", prefix: "news/" }, ear.listen);
  const record = recordOf("news/a", { holder: "someone" });
  const version = await create(writing, record);
  expect(await ear.next(about("news/a"))).toMatchObject({
    record: { holder: "someone", nonce: record.nonce },
  });
  ear.heard.length = 0;
  await applyOne(writing, { key: record.key, expected: version, next: null });
  expect(await ear.next(about("news/a"))).toMatchObject({ record: null });
  await create(writing, recordOf("news/b"));
  const key = (await admin.keys("solehold")).find((each) => each.endsWith(".default.news.b")) ?? "";
  await ear.next(about("news/b"));
  ear.heard.length = 0;
  await admin.put("solehold", key, "damage");
  expect(await ear.next(about("news/b"))).toMatchObject({ record: null });
});

it("a write that lost is not announced, nor is the clock of other clients' calls", async () => {
  const [watching, writing] = [await open(), await open()];
  const ear = new Ear();
  await watching.watch(everything, ear.listen);
  await create(writing, recordOf("won"));
  expect((await applyOne(writing, { ...recordOf("won"), expected: null, next: recordOf("won") })).kind).toBe(
    "conflict",
  );
  for (let call = 0; call < 5; call += 1) await writing.read([recordOf("won").key]);
  await create(writing, recordOf("sense"));
  await ear.next(about("sense"));
  expect(ear.heard.map((event) => event.kind === "changed" && event.key.name)).toEqual(["won", "sense"]);
});

it("a watcher that is slow for a while hears of everything, in order", async () => {
  const watching = await open({ url: proxy.through(server.url), timeoutMs: 60_000 });
  const writing = await open();
  const ear = new Ear();
  await watching.watch(everything, ear.listen);
  proxy.freeze();
  const names = Array.from({ length: 384 }, (_, index) => `slow/${index}`);
  for (let start = 0; start < names.length; start += 128)
    await writing.apply(names.slice(start, start + 128).map((name) => writeOf(recordOf(name))));
  proxy.heal();
  await ear.next(about("slow/383"));
  expect(ear.heard.map((event) => (event.kind === "changed" ? event.key.name : event.kind))).toEqual(names);
});

it("a gap in what is delivered is told as one, and the server's question whether to go on is answered", async () => {
  const store = await open({ bucket: "gaps" });
  const ear = new Ear();
  await store.watch(everything, ear.listen);
  await create(store, recordOf("first"));
  await ear.next(about("first"));
  const deliver = (delivery: Delivery): Promise<string | null> => admin.deliver("gaps", delivery);
  const heartbeat = { status: "Idle Heartbeat" };
  await deliver({ ...heartbeat, headers: { "Nats-Last-Consumer": "1" } });
  expect(await deliver({ status: "FlowControl Request", reply: "$JS.FC.KV_gaps.c.x" })).toBe(
    "$JS.FC.KV_gaps.c.x",
  );
  expect(ear.heard.filter(isReset)).toHaveLength(0);
  // The server says that it has sent nine, of which one arrived.
  await deliver({ ...heartbeat, headers: { "Nats-Last-Consumer": "9" } });
  await ear.next(isReset);
  ear.heard.length = 0;
  // And then sends number two, where ten is due.
  await create(store, recordOf("second"));
  await ear.next(about("second"));
  await ear.next(isReset);
  const stalled = { "Nats-Last-Consumer": "2", "Nats-Consumer-Stalled": "$JS.FC.KV_gaps.c.y" };
  expect(await deliver({ ...heartbeat, headers: stalled })).toBe("$JS.FC.KV_gaps.c.y");
});

it("a watch that cannot be set up is an error, and works once the server is there", async () => {
  const store = await open({ url: proxy.through(server.url), timeoutMs: 500 });
  proxy.freeze();
  const refused = await rejection(store.watch(everything, () => undefined));
  expect(refused).toMatchObject({ name: "StoreError", kind: "timeout", outcome: "not-applied" });
  proxy.heal();
  const ear = new Ear();
  await until("the watch is set up", () => store.watch(everything, ear.listen));
  await create(await open(), recordOf("late-watch"));
  await ear.next(about("late-watch"));
});
