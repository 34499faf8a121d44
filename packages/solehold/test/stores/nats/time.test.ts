/** When a reply tells the server's time, which costs a message of its own: wherever somebody may judge by it. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { type NatsStore, openNatsStore } from "../../../src/stores/nats/index.ts";
import { type Engine, startNats } from "../../engines/index.ts";
import { applyOne, create, HIGH, recordOf, rejection, writeOf } from "../records.ts";
import { expectTimeWithRecords, isTime, standingClock } from "../standing-clock.ts";
import { Admin } from "./admin.ts";

let server: Engine;
let store: NatsStore;
const { env, advance } = standingClock();
let admin: Admin;

beforeAll(async () => {
  server = await startNats();
  admin = new Admin(server.url);
});

beforeEach(async () => {
  store = await openNatsStore({ url: server.url, env });
});

afterEach(() => store.close());

afterAll(() => server.stop());

it("a write that was done tells it unless it was told just now", async () => {
  const first = recordOf("told/first");
  const told = await store.apply([writeOf(first)]);
  expect(isTime(told.storeTimeMs)).toBe(true);
  const next = writeOf(recordOf("told/next"));
  expect(await store.apply([next])).toMatchObject({ storeTimeMs: null, results: [{ kind: "applied" }] });
  advance(19);
  expect((await store.apply([writeOf(recordOf("told/soon"))])).storeTimeMs).toBeNull();
  advance(1);
  expect(isTime((await store.apply([writeOf(recordOf("told/later"))])).storeTimeMs)).toBe(true);
});

it("what shows somebody's record always tells it: a read, a listing, a conflict, alone or in a batch", async () => {
  await expectTimeWithRecords(store);
});

it("a write that must be repeated over the marker of a deleted key tells the time at which it saw that", async () => {
  const record = recordOf("marker");
  const version = await create(store, record);
  expect((await applyOne(store, { key: record.key, expected: version, next: null })).kind).toBe("applied");
  const again = await store.apply([writeOf(recordOf("marker"))]);
  expect(again.results[0]?.kind).toBe("applied");
  expect(isTime(again.storeTimeMs)).toBe(true);
});

it("a write that asks for no time still notices an older copy of the data, by its sequence", async () => {
  for (const name of ["seen/1", "seen/2", "seen/3"]) await create(store, recordOf(name));
  const state = await admin.get("solehold", "state");
  await admin.deleteBucket("solehold");
  await admin.createBucket("solehold");
  await admin.put("solehold", "state", state ?? "");
  const error = await rejection(store.apply([writeOf(recordOf("after"))]));
  expect(error).toMatchObject({ kind: "internal" });
  expect(error.message).toContain("its last writes are gone");
  await admin.deleteBucket("solehold");
});

it("a batch of which one write is below what was lost tells the time, whatever becomes of the others", async () => {
  await create(store, recordOf("kept"));
  await admin.purgeBucket("solehold");
  await rejection(store.read([recordOf("kept").key]));
  await store.acceptDataLoss();
  const high = (name: string) => writeOf(recordOf(name, { generation: HIGH }));
  await store.apply([high("told")]);
  const low = writeOf(recordOf("low", { generation: 1n }));
  const reply = await store.apply([low, high("beside")]);
  expect(reply.results.map(({ kind }) => kind)).toEqual(["conflict", "applied"]);
  expect(isTime(reply.storeTimeMs)).toBe(true);
});
