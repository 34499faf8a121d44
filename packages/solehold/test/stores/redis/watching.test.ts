/** Watching on a real server: what events carry, and what becomes of them when a connection is lost. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startProxy, startRedis } from "../../../../../scripts/engines/index.mjs";
import type { StoreEvent } from "../../../src/store/index.ts";
import { openRedisStore, type RedisStore, type RedisStoreOptions } from "../../../src/stores/redis/index.ts";
import { applyOne, create, HIGH, recordOf, rejection, until } from "../records.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
let proxy: Awaited<ReturnType<typeof startProxy>>;
let admin: Redis;
const opened: RedisStore[] = [];

beforeAll(async () => {
  server = await startRedis();
  proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
  admin = new Redis(server.url);
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  proxy.heal();
});

afterAll(async () => {
  admin?.disconnect();
  await proxy?.close();
  await server?.stop();
});

async function open(options: Partial<RedisStoreOptions> = {}): Promise<RedisStore> {
  const target = "client" in options ? {} : { url: server.url };
  const store = await openRedisStore({ ...target, ...options } as RedisStoreOptions);
  opened.push(store);
  return store;
}

const everything = { tenant: null, prefix: "" };

/** Events as they come; `next` waits for one that fits, also among those that came already. */
class EventLog {
  readonly events: StoreEvent[] = [];
  #wake: () => void = () => undefined;

  readonly add = (event: StoreEvent): void => {
    this.events.push(event);
    this.#wake();
  };

  async next(fits: (event: StoreEvent) => boolean): Promise<StoreEvent> {
    for (;;) {
      const event = this.events.find(fits);
      if (event !== undefined) return event;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

const about = (name: string) => (event: StoreEvent) => event.kind === "changed" && event.key.name === name;
const isReset = (event: StoreEvent): boolean => event.kind === "reset";

describe.each([
  ["ioredis", () => ({ url: proxy.through(server.url) })],
  ["node-redis", () => ({ client: createClient({ url: proxy.through(server.url) }) })],
])("through %s", (client, options) => {
  it("a watcher has to look after its connection was lost, and gets events again", async () => {
    const watching = await open({ ...options(), timeoutMs: 1_000 });
    const writing = await open();
    const log = new EventLog();
    await watching.watch(everything, log.add);
    proxy.cut();
    await log.next(isReset);
    await create(writing, recordOf(`after/${client}`));
    await log.next(about(`after/${client}`));
  });
});

it("an event carries the record as a read shows it, and absence after a delete", async () => {
  const [watching, writing] = [await open(), await open()];
  const log = new EventLog();
  await watching.watch({ tenant: "default", prefix: "events/" }, log.add);
  const record = recordOf("events/a", { holder: "someone" });
  const version = await create(writing, record);
  expect(await log.next(about("events/a"))).toMatchObject({ stored: { kind: "found", record, version } });
  log.events.length = 0;
  await applyOne(writing, { key: record.key, expected: version, next: null });
  expect(await log.next(about("events/a"))).toMatchObject({ stored: { kind: "absent" } });
});

it("nothing is published while nobody watches, and a closed watch gets nothing more", async () => {
  const [watching, writing] = [await open(), await open()];
  const listening = async (): Promise<number> => {
    const [, count] = (await admin.call("PUBSUB", "NUMSUB", "{solehold:}changed")) as [string, number];
    return count;
  };
  const log = new EventLog();
  const watch = await watching.watch(everything, log.add);
  expect(await listening()).toBe(1);
  await watch.close();
  await until("nobody listens", async () => ((await listening()) === 0 ? true : null));
  await admin.config("RESETSTAT");
  await create(writing, recordOf("unwatched"));
  expect(await admin.info("commandstats")).not.toContain("cmdstat_publish:");
  await watching.watch(everything, log.add);
  await create(writing, recordOf("watched-again"));
  await log.next(about("watched-again"));
  expect(log.events.filter(about("unwatched"))).toEqual([]);
});

it("nonsense on the channel is ignored", async () => {
  const [watching, writing] = [await open(), await open()];
  const log = new EventLog();
  await watching.watch(everything, log.add);
  for (const nonsense of [
    "",
    "\n\n",
    "{solehold:}",
    "{solehold:}$identity",
    "default/torn\n!",
    "\n1.1\nS1",
    "other",
    "{solehold:}/name",
    "\u0000",
  ]) {
    await admin.publish("{solehold:}changed", nonsense);
  }
  await create(writing, recordOf("sense", { generation: HIGH }));
  await log.next(about("sense"));
  // Of what is torn only the name is believed.
  expect(log.events.filter(({ kind }) => kind === "changed")).toHaveLength(2);
  expect(log.events.find(about("torn"))).toMatchObject({ stored: null });
});

it("a watch that cannot be set up is an error, and works once the server is there", async () => {
  const store = await open({ url: proxy.through(server.url), timeoutMs: 700 });
  proxy.freeze();
  const refused = await rejection(store.watch(everything, () => undefined));
  expect(refused).toMatchObject({ name: "StoreError", kind: "timeout", outcome: "not-applied" });
  proxy.heal();
  const log = new EventLog();
  await until("the watch is set up", () => store.watch(everything, log.add));
  await create(await open(), recordOf("late-watch"));
  await log.next(about("late-watch"));
});
