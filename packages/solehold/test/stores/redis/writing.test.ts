/** The script that writes, where its short ways end: keys that hold something else, and what it announces. */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import type { LeaseRecord } from "../../../src/core/index.ts";
import type { StoreEvent } from "../../../src/store/index.ts";
import { openRedisStore, type RedisStore } from "../../../src/stores/redis/index.ts";
import { encodeValue, extentOf } from "../../../src/stores/redis/value.ts";
import { applyOne, create, HIGH, recordOf, until, writeOf } from "../records.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
let admin: Redis;
const opened: RedisStore[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});

afterAll(async () => {
  admin?.disconnect();
  await server?.stop();
});

async function open(prefix = "solehold:"): Promise<RedisStore> {
  const store = await openRedisStore({ url: server.url, prefix });
  opened.push(store);
  return store;
}

const redisKey = (name: string): string => `{solehold:}default/${name}`;

/** What is published, as it is. */
async function listenIn(): Promise<{ readonly messages: string[]; stop(): void }> {
  const ear = new Redis(server.url);
  const messages: string[] = [];
  ear.on("message", (_channel, message) => messages.push(message));
  await ear.subscribe("{solehold:}news");
  return { messages, stop: () => ear.disconnect() };
}

describe("a key that holds something other than a record", () => {
  it("stops a replacement, alone and among others, and only that one", async () => {
    const store = await open();
    const [lone, one, two] = ["lone", "one", "two"].map((name) => recordOf(`replaced/${name}`));
    const versions = await Promise.all([lone!, one!, two!].map((record) => create(store, record)));
    for (const { key } of [lone!, one!]) {
      await admin.del(redisKey(key.name));
      await admin.hset(redisKey(key.name), "field", "value");
    }
    const isInTheWay = {
      kind: "conflict",
      current: { kind: "corrupt", version: expect.stringMatching(/^!/) },
    };
    expect(await applyOne(store, writeOf(recordOf("replaced/lone"), versions[0]!))).toMatchObject(isInTheWay);
    const { results } = await store.apply([
      writeOf(recordOf("replaced/one"), versions[1]!),
      writeOf(recordOf("replaced/two"), versions[2]!),
    ]);
    expect(results).toMatchObject([isInTheWay, { kind: "applied" }]);
    expect(await admin.hget(redisKey("replaced/lone"), "field")).toBe("value");
  });

  it("stops a creation, alone and among others, and only that one", async () => {
    const store = await open();
    await admin.rpush(redisKey("created/list"), "value");
    const { results } = await store.apply(
      ["created/before", "created/list", "created/after"].map((name) => writeOf(recordOf(name))),
    );
    expect(results.map(({ kind }) => kind)).toEqual(["applied", "conflict", "applied"]);
    expect(await applyOne(store, writeOf(recordOf("created/list")))).toMatchObject({ kind: "conflict" });
    expect(await admin.lrange(redisKey("created/list"), 0, -1)).toEqual(["value"]);
    const { records } = await store.list({ tenant: "default", prefix: "created/", limit: 10 });
    expect(records.map(({ key }) => key.name)).toEqual(["created/after", "created/before"]);
  });
});

describe("a write that knows what it replaces", () => {
  const granted = recordOf("kept/a");
  const changes: readonly [string, Partial<LeaseRecord>][] = [
    ["state", { renewedAtMs: 1_750_000_000_500, expiresAtMs: 1_750_000_030_500, renewals: 10 }],
    ["state", { state: "released", endedAtMs: 1_750_000_012_345 }],
    ["state and grant", { generation: HIGH + 1n, tokenHash: "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg" }],
    ["all", { holder: "holder-2" }],
  ];

  it.each(changes)(
    "sends '%s' of it, and Redis holds what a whole value would be",
    async (extent, change) => {
      const store = await open();
      expect(extentOf(granted, recordOf("kept/a", change))).toBe(extent);
      for (const names of [["kept/a"], ["kept/a", "kept/b"]]) {
        await admin.del(names.map(redisKey));
        const before = names.map((name) => recordOf(name));
        const versions = await Promise.all(before.map((record) => create(store, record)));
        const next = names.map((name) => recordOf(name, change));
        const { results } = await store.apply(
          next.map((record, index) => ({
            ...writeOf(record, versions[index]!),
            replaces: before[index]!,
          })),
        );
        const { records } = await store.read(next.map(({ key }) => key));
        expect(await admin.mget(names.map(redisKey))).toEqual(next.map(encodeValue));
        expect(results.map((result) => result.kind === "applied" && result.version)).toEqual(
          records.map((found) => found.kind === "found" && found.version),
        );
      }
    },
  );

  it.each([
    ["alone", 1],
    ["among others", 2],
    ["among new ones", 3],
  ])("keeps nothing of a damaged value: %s it is a conflict that shows the damage", async (_, count) => {
    const store = await open();
    const names = [`torn/${count}/a`, `torn/${count}/b`];
    const before = names.map((name) => recordOf(name));
    const versions = await Promise.all(before.map((record) => create(store, record)));
    const torn = encodeValue(before[0]!).split("\n")[0]!;
    await admin.set(redisKey(names[0]!), torn);
    const ends = before.map((record, index) => ({
      ...writeOf(
        { ...record, state: "released", endedAtMs: record.grantedAtMs, nonce: `end-${index}` },
        versions[index]!,
      ),
      replaces: record,
    }));
    const writes = [...ends, writeOf(recordOf(`torn/${count}/c`))].slice(0, count);
    const { results } = await store.apply(writes);
    expect(results.map(({ kind }) => kind)).toEqual(["conflict", "applied", "applied"].slice(0, count));
    expect(results[0]).toMatchObject({ current: { kind: "corrupt" } });
    expect(await admin.get(redisKey(names[0]!))).toBe(torn);
  });
});

describe("an announcement", () => {
  it("names what was written, with whether it is held now, and nothing that was not written", async () => {
    const store = await open();
    const names = ["said/a", "said/b", "said/c"];
    const versions = await Promise.all(names.map((name) => create(store, recordOf(name))));
    const news = await listenIn();
    await store.apply([
      writeOf(recordOf("said/a"), versions[0]!),
      writeOf(recordOf("said/b"), "x".repeat(22)),
      writeOf(recordOf("said/c", { state: "released", endedAtMs: 1 }), versions[2]!),
    ]);
    const ended = recordOf("said/b", { state: "released" });
    const lone = await applyOne(store, writeOf(ended, versions[1]!));
    expect(lone).toMatchObject({ kind: "applied" });
    await store.apply([writeOf(recordOf("said/b"), "x".repeat(22))]);
    await store.apply([writeOf(recordOf("said/new")), writeOf(recordOf("said/newer"))]);
    const { version } = lone as { version: string };
    await store.apply([{ key: recordOf("said/b").key, expected: version, next: null }]);
    await until("all was heard", async () => (news.messages.length >= 4 ? news.messages : null));
    expect(news.messages).toEqual([
      `he${redisKey("said/a")}\n${redisKey("said/c")}`,
      `e${redisKey("said/b")}\n\n${encodeValue(ended)}`,
      `hh${redisKey("said/new")}\n${redisKey("said/newer")}`,
      `e${redisKey("said/b")}`,
    ]);
    news.stop();
  });

  it("tells who wants no more whether the key is held, and shows the others the record", async () => {
    const [store, watcher] = [await open(), await open()];
    const events: { readonly holding: StoreEvent[]; readonly records: StoreEvent[] } = {
      holding: [],
      records: [],
    };
    const scope = { tenant: "default", prefix: "watched" };
    await watcher.watch({ ...scope, wants: "holding" }, (event) => events.holding.push(event));
    await watcher.watch(scope, (event) => events.records.push(event));
    const record = recordOf("watched");
    const version = await create(store, record);
    await until("the record was shown", async () => events.records.at(0) ?? null);
    const ended = recordOf("watched", { state: "released", endedAtMs: 1 });
    await applyOne(store, writeOf(ended, version));
    await until("its end was shown", async () => events.records.at(1) ?? null);
    // As one who knows no letters would announce it.
    await admin.publish("{solehold:}news", redisKey("watched"));
    await until("it was shown again", async () => events.records.at(2) ?? null);
    const { key } = record;
    const told = { kind: "changed", key, record: null };
    const { holder: by } = record;
    expect(events.holding).toEqual([
      { ...told, held: "yes" },
      { ...told, held: "no", by, stored: expect.any(Function) },
      told,
    ]);
    const [, end] = events.holding;
    const { records } = await watcher.read([key]);
    expect(end?.kind === "changed" && end.stored?.()).toEqual(records[0]);
    expect(events.records).toEqual(
      [record, ended, ended].map((shown) => ({ kind: "changed", key, record: shown })),
    );
  });

  it("is heard under a prefix that means something in a script", async () => {
    const store = await open("it's]]\\n\"%d:");
    const events: StoreEvent[] = [];
    await store.watch({ tenant: "default", prefix: "", wants: "holding" }, (event) => events.push(event));
    const record = recordOf("quoted");
    await create(store, record);
    await until("it was heard", async () => events.at(0) ?? null);
    expect(events).toEqual([{ kind: "changed", key: record.key, record: null, held: "yes" }]);
    const { records } = await store.list({ tenant: "default", prefix: "", limit: 10 });
    expect(records).toEqual([record]);
  });
});
