/** Wake-ups on a real server: what a watcher hears over a lost connection, and what it costs. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startProxy, startRedis } from "../../../../../scripts/engines/index.mjs";
import { keyId } from "../../../src/core/index.ts";
import type { StoreEvent } from "../../../src/store/index.ts";
import { openRedisStore, type RedisStore, type RedisStoreOptions } from "../../../src/stores/redis/index.ts";
import { applyOne, create, HIGH, recordOf, rejection, until, writeOf } from "../records.ts";

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
class Ear {
  readonly heard: StoreEvent[] = [];
  #wake: () => void = () => undefined;

  readonly listen = (event: StoreEvent): void => {
    this.heard.push(event);
    this.#wake();
  };

  async next(fits: (event: StoreEvent) => boolean): Promise<StoreEvent> {
    for (;;) {
      const event = this.heard.find(fits);
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
  it("a watcher is told to look for itself after its connection was lost, and hears again", async () => {
    const watching = await open({ ...options(), timeoutMs: 1_000 });
    const writing = await open();
    const ear = new Ear();
    await watching.watch(everything, ear.listen);
    proxy.cut();
    await ear.next(isReset);
    await create(writing, recordOf(`after/${client}`));
    await ear.next(about(`after/${client}`));
  });
});

it("news carry the record as it is, and null for one that is gone", async () => {
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
});

it("a watcher reads only what it watches, and reads news that come in a burst together", async () => {
  const [watching, writing] = [await open(), await open()];
  const ear = new Ear();
  await watching.watch({ tenant: "default", prefix: "burst/" }, ear.listen);
  await create(writing, recordOf("burst/warm"));
  await ear.next(about("burst/warm"));
  const calls = async (): Promise<number> =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await admin.info("commandstats"))?.[1] ?? 0);
  const before = await calls();
  await Promise.all(
    Array.from({ length: 100 }, (_, index) => create(writing, recordOf(`elsewhere/${index}`))),
  );
  const batch = Array.from({ length: 100 }, (_, index) => writeOf(recordOf(`burst/${index}`)));
  await writing.apply(batch);
  for (const { key } of batch) await ear.next(about(key.name));
  const reads = (await calls()) - before - 101;
  expect(reads).toBe(1);
});

it("when the record cannot be read the watcher is told to look for itself", async () => {
  const [watching, writing] = [await open({ prefix: "lossy:" }), await open({ prefix: "lossy:" })];
  const ear = new Ear();
  await watching.watch(everything, ear.listen);
  const key = recordOf("job").key;
  await create(writing, recordOf("job"));
  await ear.next(about("job"));
  const [sequence] = await admin.keys("{lossy:}$sequence:*");
  await admin.del(sequence!);
  await admin.publish("{lossy:}news", `{lossy:}${keyId(key)}`);
  await ear.next(isReset);
});

it("nonsense on the channel is ignored", async () => {
  const [watching, writing] = [await open(), await open()];
  const ear = new Ear();
  await watching.watch(everything, ear.listen);
  for (const nonsense of [
    "",
    "\n\n",
    "{solehold:}",
    "{solehold:}$state",
    "other",
    "{solehold:}/name",
    "\u0000",
  ]) {
    await admin.publish("{solehold:}news", nonsense);
  }
  await create(writing, recordOf("sense", { generation: HIGH }));
  await ear.next(about("sense"));
  expect(ear.heard).toHaveLength(1);
});

it("a watch that cannot be set up is an error, and works once the server is there", async () => {
  const store = await open({ url: proxy.through(server.url), timeoutMs: 700 });
  proxy.freeze();
  const refused = await rejection(store.watch(everything, () => undefined));
  expect(refused).toMatchObject({ name: "StoreError", kind: "timeout", outcome: "not-applied" });
  proxy.heal();
  const ear = new Ear();
  await until("the watch is set up", () => store.watch(everything, ear.listen));
  await create(await open(), recordOf("late-watch"));
  await ear.next(about("late-watch"));
});
