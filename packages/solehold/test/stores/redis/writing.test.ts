/** The script that writes: keys that hold something else, damage, and what a value looks like. */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import { encodeRecord } from "../../../src/core/index.ts";
import type { StoreEvent } from "../../../src/store/index.ts";
import { openRedisStore, type RedisStore } from "../../../src/stores/redis/index.ts";
import { applyOne, create, recordOf, until, writeOf } from "../records.ts";

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

it("a damaged value is a conflict for a write that expects no record, and shows the version to repair it with", async () => {
  const store = await open();
  const version = await create(store, recordOf("torn/a"));
  await admin.set(redisKey("torn/a"), "garbage");
  const stale = await applyOne(store, writeOf(recordOf("torn/a"), version));
  if (stale.kind !== "conflict" || stale.current.kind !== "corrupt") throw new Error("not shown as damage");
  await admin.set(redisKey("torn/a"), "other garbage");
  const repaired = writeOf(recordOf("torn/a"), stale.current.version);
  // It was damaged once more: that version is not current any more.
  expect((await applyOne(store, repaired)).kind).toBe("conflict");
  await admin.set(redisKey("torn/a"), "garbage");
  expect((await applyOne(store, repaired)).kind).toBe("applied");
});

it("a value that was damaged behind its version is read as damage", async () => {
  const store = await open();
  const record = recordOf("torn/b");
  const version = await create(store, record);
  await admin.setrange(redisKey("torn/b"), 60, "XXXX");
  expect((await store.read([record.key])).records[0]).toMatchObject({ kind: "corrupt", version });
});

it("a value is its version and the text of the record, so that a person can read it", async () => {
  const store = await open();
  const record = recordOf("readable", { holder: "somebody" });
  const version = await create(store, record);
  expect(await admin.get(redisKey("readable"))).toBe(`${version}\n${encodeRecord(record)}`);
});

it("works under a prefix that means something in a script", async () => {
  const store = await open("it's]]\\n\"%d:");
  const events: StoreEvent[] = [];
  await store.watch({ tenant: "default", prefix: "" }, (event) => events.push(event));
  const record = recordOf("quoted");
  await create(store, record);
  await until("it was announced", async () => events.at(0) ?? null);
  const { records } = await store.list({ tenant: "default", prefix: "", limit: 10 });
  expect(records).toEqual([record]);
});
