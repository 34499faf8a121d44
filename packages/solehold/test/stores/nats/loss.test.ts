/**
 * A bucket loses what it acknowledged: it is deleted, purged, or comes back as it was some time ago. Whoever saw more
 * has one call rejected and then works on what is there; nobody takes a new record for an old one.
 */
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LeaseStore, StoredRecord } from "../../../src/store/index.ts";
import { type NatsStore, openNatsStore } from "../../../src/stores/nats/index.ts";
import { type Engine, startNats } from "../../engines/index.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";
import { Admin, type Backup } from "./admin.ts";

let server: Engine;
let admin: Admin;
const opened: NatsStore[] = [];

beforeEach(async () => {
  server = await startNats();
  admin = new Admin(server.url);
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  await server.stop();
});

async function open(): Promise<NatsStore> {
  const store = await openNatsStore({ url: server.url });
  opened.push(store);
  return store;
}

const key = (name: string) => ({ tenant: "default", name });

async function readOne(store: LeaseStore, name: string): Promise<StoredRecord> {
  return (await store.read([key(name)])).records[0] as StoredRecord;
}

const revisionOf = async (store: LeaseStore): Promise<bigint> => (await store.read([])).revision ?? 0n;

async function expectLoss(call: Promise<unknown>, what: string): Promise<void> {
  const error = await rejection(call);
  expect([error.kind, error.message]).toEqual(["data-loss", expect.stringContaining(what)]);
  expect(error.message).toContain(what);
  expect(error.message).toContain("their holders may still believe in them until their ttl ends");
}

/** The error of the first call that gets through to the server again. */
async function firstAnswer(store: LeaseStore) {
  return until("the client is connected again", async () => {
    const error = await rejection(store.read([]));
    return error.kind === "unreachable" || error.kind === "timeout" ? null : error;
  });
}

describe.each([
  ["purged", () => admin.purgeBucket("solehold")],
  ["deleted", () => admin.deleteBucket("solehold")],
  [
    "replaced by another",
    async () => {
      await admin.deleteBucket("solehold");
      const stranger = await open();
      // Beyond every sequence that the others saw, so that only the identity differs.
      for (let round = 0; round < 20; round += 1) await create(stranger, recordOf(`stranger/${round}`));
    },
  ],
  [
    "purged and filled again",
    async () => {
      await admin.purgeBucket("solehold");
      const stranger = await open();
      for (let round = 0; round < 20; round += 1) await create(stranger, recordOf(`stranger/${round}`));
    },
  ],
])("after the bucket was %s", (_what, lose) => {
  const lost = "its data was deleted or replaced";
  const calls: readonly (readonly [string, (store: LeaseStore, version: string) => Promise<unknown>])[] = [
    ["read", (store) => store.read([key("job")])],
    ["listing", (store) => store.list?.({ tenant: "default", prefix: "", limit: 1 }) ?? Promise.resolve()],
    ["create", (store) => store.apply([writeOf(recordOf("new"))])],
    ["update", (store, version) => store.apply([writeOf(recordOf("job"), version)])],
    ["batch", (store, version) => store.apply([writeOf(recordOf("new")), writeOf(recordOf("job"), version)])],
  ];

  it.each(calls)("the next %s of a client that saw the data is rejected, once", async (_kind, call) => {
    const store = await open();
    const version = await create(store, recordOf("job"));
    await lose();
    await expectLoss(call(store, version), lost);
    // It did nothing that anybody could take for a grant, and the client goes on with what is there.
    expect(await readOne(store, "job")).toEqual({ kind: "absent" });
    expect(await readOne(await open(), "new")).toEqual({ kind: "absent" });
    expect((await applyOne(store, writeOf(recordOf("job"), version))).kind).toBe("conflict");
    const again = recordOf("job");
    expect(await create(store, again)).not.toBe(version);
    expect(await readOne(await open(), "job")).toMatchObject({ record: { nonce: again.nonce } });
  });

  it("every client that saw the data has one call rejected, and the revision is above what it was", async () => {
    const [one, two] = [await open(), await open()];
    await create(one, recordOf("job"));
    const before = await revisionOf(two);
    await lose();
    for (const store of [one, two]) await expectLoss(store.read([]), lost);
    for (const store of [one, two, await open()]) expect(await revisionOf(store)).toBeGreaterThan(before);
    const kept = recordOf("kept");
    await create(one, kept);
    expect(await readOne(two, "kept")).toMatchObject({ record: { nonce: kept.nonce } });
  });

  it("whoever watches gets a reset, then the events of the new data, and no rejection goes unnoticed", async () => {
    const store = await open();
    const events: string[] = [];
    await store.watch({ tenant: null, prefix: "" }, (event) => {
      events.push(event.kind === "changed" ? event.key.name : event.kind);
    });
    await create(store, recordOf("job"));
    await lose();
    // The watch notices the loss, too, and may end the connection under this call.
    expect((await firstAnswer(store)).kind).toBe("data-loss");
    const writer = await open();
    await until("the watcher is back", async () => {
      await create(writer, recordOf(`after/${performance.now()}`));
      return events.some((event) => event.startsWith("after/")) ? true : null;
    });
    expect(events).toContain("reset");
  });
});

describe("after a restart from an older copy", () => {
  let witness: NatsStore;
  let idle: NatsStore;
  let before: bigint;
  let lostVersion: string;

  /** The copy knows the first write of a key; its second one, and another key, are lost. */
  beforeEach(async () => {
    witness = await open();
    idle = await open();
    const first = await create(witness, recordOf("job"));
    await idle.read([]);
    const [data, copy] = [join(server.dataDir, "data"), join(server.dataDir, "copy")];
    await server.pause();
    await cp(data, copy, { recursive: true });
    await server.resume();
    // Sequences for what others write after the restart.
    for (let round = 0; round < 10; round += 1) await create(witness, recordOf(`lost/${round}`));
    const second = await applyOne(witness, writeOf(recordOf("job", { holder: "lost" }), first));
    lostVersion = second.kind === "applied" ? (second.version ?? "") : "";
    before = await revisionOf(witness);
    await server.kill();
    await rm(data, { recursive: true });
    await cp(copy, data, { recursive: true });
    await server.restart();
  });

  it("a client that saw the lost writes has one call rejected and goes on; one that did not goes on", async () => {
    expect(await firstAnswer(witness)).toMatchObject({ kind: "data-loss" });
    expect(await readOne(witness, "job")).toMatchObject({ kind: "found", record: { holder: "holder-1" } });
    expect(await firstAnswer(idle)).toMatchObject({ kind: "answered" });
  });

  it("the revision is above all that was seen before, for a new client as well", async () => {
    expect(await revisionOf(await open())).toBeGreaterThan(before);
  });

  it("a witness gets an error although others have written beyond what it saw, and its version fits no new write", async () => {
    const sequence = Number.parseInt(lostVersion, 10);
    const stranger = await open();
    const standing = await readOne(stranger, "job");
    if (standing.kind !== "found") throw new Error("the record was in the copy");
    await admin.putUpTo("solehold", "padding", sequence - 1);
    const other = await applyOne(
      stranger,
      writeOf(recordOf("job", { holder: "stranger" }), standing.version),
    );
    // The same sequence as the write that was lost.
    expect(other).toMatchObject({ kind: "applied", version: expect.stringMatching(`^${sequence}\\.`) });
    await admin.putUpTo("solehold", "padding", sequence + 50);
    expect(await firstAnswer(witness)).toMatchObject({ kind: "data-loss" });
    const result = await applyOne(witness, writeOf(recordOf("job", { holder: "lost" }), lostVersion));
    expect(result).toMatchObject({ kind: "conflict", current: { record: { holder: "stranger" } } });
    expect(await readOne(stranger, "job")).toMatchObject({ record: { holder: "stranger" } });
  });
});

describe("after a backup was restored under a running server", () => {
  let store: NatsStore;
  let version: string;
  let backup: Backup;

  /** The backup knows one key; the others are lost when it is restored. */
  beforeEach(async () => {
    store = await open();
    version = await create(store, recordOf("kept"));
    backup = await admin.backup("solehold");
    for (let round = 0; round < 5; round += 1) await create(store, recordOf(`lost/${round}`));
  });

  it.each<readonly [string, () => Promise<unknown>]>([
    ["read", () => store.read([key("kept")])],
    ["create", () => store.apply([writeOf(recordOf("new"))])],
    ["update", () => store.apply([writeOf(recordOf("kept"), version)])],
  ])("the next %s of a client that saw more is rejected, once", async (_kind, call) => {
    await admin.restore("solehold", backup);
    await expectLoss(call(), "its last acknowledged writes are gone");
    expect(await readOne(store, "lost/0")).toEqual({ kind: "absent" });
    expect(await readOne(store, "kept")).toMatchObject({ kind: "found" });
  });

  it("a version of the lost writes fits no new write, though it has the same sequence", async () => {
    const updated = await applyOne(store, writeOf(recordOf("kept", { holder: "lost" }), version));
    const lost = updated.kind === "applied" ? (updated.version ?? "") : "";
    expect(lost).not.toBe("");
    await create(store, recordOf("more"));
    await admin.restore("solehold", backup);
    const stranger = await open();
    await admin.putUpTo("solehold", "padding", Number.parseInt(lost, 10) - 1);
    const other = await applyOne(stranger, writeOf(recordOf("kept", { holder: "stranger" }), version));
    expect(other).toEqual({ kind: "applied", version: lost });
    await expectLoss(store.read([]), "its last acknowledged writes are gone");
    const result = await applyOne(store, writeOf(recordOf("kept"), lost));
    expect(result).toMatchObject({ kind: "conflict", current: { record: { holder: "stranger" } } });
  });

  it("whoever comes new finds what the backup has, under its version", async () => {
    await admin.restore("solehold", backup);
    expect(await readOne(await open(), "kept")).toMatchObject({ kind: "found", version });
  });
});

it("a version of deleted data fits no write of the data that follows, whoever passes it on", async () => {
  const version = await create(await open(), recordOf("job"));
  await admin.deleteBucket("solehold");
  const fresh = await open();
  const next = await create(fresh, recordOf("job"));
  expect(Number.parseInt(next, 10)).toBe(Number.parseInt(version, 10));
  expect((await applyOne(fresh, writeOf(recordOf("job"), version))).kind).toBe("conflict");
});

it("a restart that lost nothing changes no version and rejects no call", async () => {
  const store = await open();
  const version = await create(store, recordOf("job"));
  await server.kill();
  await server.restart();
  expect(await firstAnswer(store)).toMatchObject({ kind: "answered" });
  expect(await readOne(store, "job")).toMatchObject({ kind: "found", version });
  expect(await applyOne(store, writeOf(recordOf("job"), version))).toMatchObject({ kind: "applied" });
});
