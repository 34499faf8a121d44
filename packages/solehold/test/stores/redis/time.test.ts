/** When a reply tells the server's time, which costs the server more than the write: wherever somebody may judge by it. */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import type { LeaseRecord } from "../../../src/core/index.ts";
import type { ConditionalWrite } from "../../../src/store/index.ts";
import { openRedisStore, type RedisStore } from "../../../src/stores/redis/index.ts";
import { applyOne, create, HIGH, recordOf, rejection, until, writeOf } from "../records.ts";
import { expectTimeWithRecords, isTime, standingClock } from "../standing-clock.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
let admin: Redis;
let store: RedisStore;
const { env, advance } = standingClock();

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
});

beforeEach(async () => {
  await admin.flushall();
  store = await openRedisStore({ url: server.url, env });
});

afterEach(() => store.close());

afterAll(async () => {
  admin?.disconnect();
  await server?.stop();
});

/** The three ways of writing: a lone lease that goes on, one that ends, and several at once. */
async function replacements(): Promise<readonly (readonly ConditionalWrite[])[]> {
  const write = async (name: string, next: Partial<LeaseRecord>): Promise<ConditionalWrite> => {
    const record = recordOf(name);
    const expected = await create(store, record);
    return { key: record.key, expected, next: { ...record, ...next, nonce: `${name}/next` } };
  };
  return [
    [await write("held", { renewals: 1 })],
    [await write("ended", { state: "released", endedAtMs: recordOf("ended").grantedAtMs })],
    [await write("one", { renewals: 1 }), await write("other", { renewals: 1 })],
  ];
}

it("a write that was done tells it unless it was told just now, however it was written", async () => {
  for (const [index, writes] of (await replacements()).entries()) {
    advance(20);
    expect(isTime((await store.apply([writeOf(recordOf(`told/${index}`))])).storeTimeMs)).toBe(true);
    advance(19);
    const reply = await store.apply(writes);
    expect(reply.results.map(({ kind }) => kind)).toEqual(writes.map(() => "applied"));
    expect(reply.storeTimeMs).toBeNull();
  }
});

it("and so does every way of writing, when it was not told for long", async () => {
  for (const writes of await replacements()) {
    advance(20);
    expect(isTime((await store.apply(writes)).storeTimeMs)).toBe(true);
  }
});

it("what shows somebody's record always tells it: a read, a listing, a conflict, alone or in a batch", async () => {
  const record = recordOf("moved");
  const version = await create(store, record);
  const moved = { ...record, nonce: "moved" };
  expect((await applyOne(store, { key: record.key, expected: version, next: moved })).kind).toBe("applied");
  const ended = { ...record, state: "released", endedAtMs: record.grantedAtMs, nonce: "ended" } as const;
  await expectTimeWithRecords(store, [{ key: record.key, expected: version, next: ended }]);
});

it("the first write after a lost connection tells it: another server may answer there, by another clock", async () => {
  await create(store, recordOf("before"));
  await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  let attempts = 0;
  const reply = await until("an answer on the next connection", () => {
    attempts += 1;
    return store.apply([writeOf(recordOf(`after/${attempts}`))]).catch(() => null);
  });
  expect(isTime(reply.storeTimeMs)).toBe(true);
});

it("a write that asks for no time still notices an older copy of the data, by its sequence", async () => {
  for (const name of ["seen/1", "seen/2", "seen/3"]) await create(store, recordOf(name));
  const [sequence = ""] = await admin.keys("{solehold:}$sequence:*");
  await admin.set(sequence, 1);
  const error = await rejection(store.apply([writeOf(recordOf("after"))]));
  expect(error.message).toContain("what this client saw is not there any more");
});

it("and counts what it wrote: an older copy that lacks only that is noticed, too", async () => {
  await create(store, recordOf("told"));
  const [sequence = ""] = await admin.keys("{solehold:}$sequence:*");
  const before = await admin.get(sequence);
  expect((await store.apply([writeOf(recordOf("untold"))])).storeTimeMs).toBeNull();
  await admin.set(sequence, String(before));
  const error = await rejection(store.apply([writeOf(recordOf("after"))]));
  expect(error.message).toContain("what this client saw is not there any more");
});

it("a batch of which one write is below what was lost tells the time, whatever becomes of the others", async () => {
  await create(store, recordOf("kept"));
  await admin.flushall();
  await rejection(store.read([recordOf("kept").key]));
  await store.acceptDataLoss();
  const high = (name: string) => writeOf(recordOf(name, { generation: HIGH }));
  await store.apply([high("told")]);
  const low = writeOf(recordOf("low", { generation: 1n }));
  const reply = await store.apply([low, high("beside")]);
  expect(reply.results.map(({ kind }) => kind)).toEqual(["conflict", "applied"]);
  expect(isTime(reply.storeTimeMs)).toBe(true);
});
