/** Reading stores nothing, and shows a counter that grows with every write. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type NatsStore, openNatsStore } from "../../../src/stores/nats/index.ts";
import { type Engine, startNats } from "../../engines/index.ts";
import { applyOne, create, recordOf, writeOf } from "../records.ts";
import { Admin } from "./admin.ts";

let server: Engine;
let admin: Admin;
let store: NatsStore;

beforeAll(async () => {
  server = await startNats();
  admin = new Admin(server.url);
  store = await openNatsStore({ url: server.url });
});

afterAll(async () => {
  await store?.close();
  await server?.stop();
});

const stateOf = async () => {
  const { messages, last_seq } = (await admin.bucketInfo("solehold")).state;
  return { messages, last_seq };
};

it("200 reads, 50 listings and a second client store no message", async () => {
  const record = recordOf("read/often");
  await create(store, record);
  const before = await stateOf();
  for (let call = 0; call < 200; call += 1) await store.read([record.key, recordOf("read/never").key]);
  for (let call = 0; call < 50; call += 1) await store.list({ tenant: "default", prefix: "", limit: 10 });
  const second = await openNatsStore({ url: server.url });
  await second.read([record.key]);
  await second.close();
  expect(await stateOf()).toEqual(before);
});

it("a write that is done stores one message, and one that is refused none", async () => {
  const record = recordOf("written/once");
  const before = (await stateOf()).last_seq;
  const version = await create(store, record);
  expect((await stateOf()).last_seq).toBe(before + 1);
  expect((await applyOne(store, writeOf(recordOf("written/once")))).kind).toBe("conflict");
  expect((await stateOf()).last_seq).toBe(before + 1);
  expect((await applyOne(store, writeOf(recordOf("written/once"), version))).kind).toBe("applied");
  expect((await stateOf()).last_seq).toBe(before + 2);
});

it("no reply carries a time, and every read a revision that is above all before it", async () => {
  const { key } = recordOf("revision");
  let last = 0n;
  for (let round = 0; round < 20; round += 1) {
    const { revision, storeTimeMs } = await store.read([key]);
    expect(storeTimeMs).toBeNull();
    expect(revision).toBeGreaterThan(last);
    expect((await store.read([])).revision).toBe(revision);
    last = revision ?? 0n;
    await create(store, recordOf(`revision/${round}`));
  }
});
