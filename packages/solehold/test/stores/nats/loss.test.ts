/**
 * A bucket loses what it acknowledged: it is deleted, purged, or comes back as it was some time ago. Whoever
 * saw more refuses; whoever did not gets fences above all that were handed out.
 */
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { floorKey, type LeaseRecord, recordFence } from "../../../src/core/index.ts";
import { type CommandOutcome, StoreLeaseManager } from "../../../src/manager/index.ts";
import type { ConditionalWrite, LeaseStore, StoredRecord } from "../../../src/store/index.ts";
import { type NatsStore, type NatsStoreOptions, openNatsStore } from "../../../src/stores/nats/index.ts";
import { type Engine, startNats } from "../../engines/index.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";
import { Admin } from "./admin.ts";

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

async function open(options: Partial<NatsStoreOptions> = {}): Promise<NatsStore> {
  const store = await openNatsStore({ url: server.url, ...options });
  opened.push(store);
  return store;
}

async function readOne(store: LeaseStore, name: string): Promise<StoredRecord> {
  return (await store.read([{ tenant: "default", name }])).records[0] as StoredRecord;
}

async function floorOf(store: LeaseStore): Promise<bigint> {
  const [floor] = (await store.read([floorKey("default")])).records;
  if (floor?.kind !== "found") throw new Error("a NATS store always has a floor");
  return floor.record.generation;
}

/** As the manager does it: the next generation after what is there, on exactly that version. */
function grantAfter(stored: StoredRecord, name: string): ConditionalWrite {
  if (stored.kind !== "found") return writeOf(recordOf(name, { generation: 1n }));
  return writeOf(recordOf(name, { generation: stored.record.generation + 1n }), stored.version);
}

async function refusal(call: Promise<unknown>, what = "lost data"): Promise<void> {
  const error = await rejection(call);
  expect(error).toMatchObject({ name: "StoreError", kind: "internal", outcome: "not-applied" });
  expect(error.message).toContain(what);
  expect(error.message).toContain("acceptDataLoss()");
}

/** Waits until the client is connected again and has noticed. */
async function noticed(store: LeaseStore, what: string): Promise<void> {
  const error = await until("the loss is noticed", async () => {
    const failure = await rejection(store.read([]));
    return failure.kind === "internal" ? failure : null;
  });
  expect(error.message).toContain(what);
}

const manager = (store: LeaseStore) => new StoreLeaseManager({ store });
const key = (name: string) => ({ tenant: "default", name });

async function granted(outcome: Promise<CommandOutcome>): Promise<{ fence: bigint; token: string }> {
  const answer = await outcome;
  if (answer.kind !== "applied") throw new Error(`not granted: ${answer.kind}`);
  return { fence: recordFence(answer.decision.lease), token: answer.token };
}

/** Takes the lease and gives it back, several times; the last fence. */
async function cycle(leases: StoreLeaseManager, name: string, times: number): Promise<bigint> {
  let last = 0n;
  for (let count = 0; count < times; count += 1) {
    const { fence, token } = await granted(
      leases.acquire({ key: key(name), holder: "worker", ttlMs: 30_000 }),
    );
    expect(fence).toBeGreaterThan(last);
    last = fence;
    await leases.release({ key: key(name), holder: "worker", token });
  }
  return last;
}

describe.each([
  ["purged", () => admin.purgeBucket("solehold"), "it is empty now"],
  ["deleted", () => admin.deleteBucket("solehold"), "its bucket is gone"],
  [
    "replaced by another",
    async () => {
      await admin.deleteBucket("solehold");
      const stranger = manager(await open());
      // Beyond every sequence that the others saw: only the state tells them.
      for (let round = 0; round < 20; round += 1) await cycle(stranger, `stranger/${round}`, 1);
    },
    "its data was replaced",
  ],
])("after the bucket was %s", (_what, lose, told) => {
  it("a client that saw the data refuses every call from the first, and tells why", async () => {
    const [writer, reader] = [await open(), await open()];
    const version = await create(writer, recordOf("job"));
    await create(reader, recordOf("other"));
    await lose();
    await refusal(writer.apply([writeOf(recordOf("new"))]), told);
    await refusal(writer.apply([writeOf(recordOf("job"), version)]), told);
    await refusal(reader.read([key("job")]), told);
    await refusal(reader.list({ tenant: "default", prefix: "", limit: 1 }), told);
    const fresh = await open();
    expect(await readOne(fresh, "new")).toEqual({ kind: "absent" });
  });

  it("an update that expects an old version is refused as well, and nothing is written", async () => {
    const store = await open();
    const version = await create(store, recordOf("job"));
    await lose();
    expect(await rejection(store.apply([writeOf(recordOf("job"), version)]))).toMatchObject({
      kind: "internal",
      outcome: "not-applied",
    });
    expect(await readOne(await open(), "job")).toEqual({ kind: "absent" });
  });

  it("whoever is new, or accepts the loss, is granted fences above all that were handed out", async () => {
    const store = await open();
    const old = manager(store);
    const before = await cycle(old, "job", 20);
    await lose();
    const refused = await old.acquire({ key: key("job"), holder: "worker", ttlMs: 30_000 });
    expect(refused).toMatchObject({ kind: "unsettled", outcome: "not-applied" });
    const after = await cycle(manager(await open()), "job", 1);
    expect(after).toBeGreaterThan(before);
    await store.acceptDataLoss();
    // It remembers the old floor, and versions of the old data.
    for (const name of ["job", "young"]) expect(await cycle(old, name, 2)).toBeGreaterThan(before);
    expect(await cycle(manager(await open()), "job", 1)).toBeGreaterThan(after);
  });
});

describe("accepting a loss", () => {
  it("joins the data of whoever came first, instead of replacing it", async () => {
    const [one, two] = [await open(), await open()];
    await create(one, recordOf("job"));
    await admin.purgeBucket("solehold");
    await refusal(one.read([]));
    await refusal(two.read([]));
    await one.acceptDataLoss();
    const kept = await create(one, recordOf("kept"));
    await refusal(two.read([]));
    await two.acceptDataLoss();
    expect(await readOne(two, "kept")).toMatchObject({ kind: "found", version: kept });
    expect(await readOne(one, "kept")).toMatchObject({ kind: "found", version: kept });
  });

  it("happens without a call after the time that was set for it", async () => {
    const store = await open({ dataLoss: { acceptAfterMs: 0 } });
    await create(store, recordOf("job"));
    await admin.purgeBucket("solehold");
    await refusal(store.read([]));
    expect(await readOne(store, "job")).toEqual({ kind: "absent" });
  });

  it("changes nothing where nothing was lost", async () => {
    const store = await open();
    const version = await create(store, recordOf("job"));
    const floor = await floorOf(store);
    await store.acceptDataLoss();
    expect(await readOne(store, "job")).toMatchObject({ version });
    expect(await floorOf(store)).toBe(floor);
  });

  it.each([
    ["by a call", {}],
    ["by itself", { dataLoss: { acceptAfterMs: 0 } }],
  ] as const)("%s lets watchers hear of the new data", async (_how, options) => {
    const store = await open(options);
    const heard: string[] = [];
    await store.watch({ tenant: null, prefix: "" }, (event) => {
      if (event.kind === "changed") heard.push(event.key.name);
    });
    await admin.deleteBucket("solehold");
    await rejection(store.read([]));
    if ("dataLoss" in options) await store.read([]);
    else await store.acceptDataLoss();
    const writer = await open();
    await until("the watcher hears again", async () => {
      await create(writer, recordOf(`after/${performance.now()}`));
      return heard.length > 0 ? heard : null;
    });
  });
});

describe("after a restart from an older copy", () => {
  const live: Partial<LeaseRecord> = { expiresAtMs: Date.now() + 600_000 };
  const ended: Partial<LeaseRecord> = { state: "released", endedAtMs: 1 };
  const names = ["ended", "live", "young"];
  let witness: NatsStore;
  let idle: NatsStore;
  let lost: bigint;
  /** The versions of what is lost. */
  const versions = new Map<string, string>();

  /** The copy knows the first generation of two keys; later generations, and a third key, are lost. */
  beforeEach(async () => {
    witness = await open();
    idle = await open();
    const floor = await floorOf(witness);
    lost = floor + 50n;
    await create(witness, recordOf("ended", { ...ended, generation: floor + 1n }));
    await create(witness, recordOf("live", { ...live, generation: floor + 1n }));
    const [data, copy] = [join(server.dataDir, "data"), join(server.dataDir, "copy")];
    await server.pause();
    await cp(data, copy, { recursive: true });
    await server.resume();
    // Every call that reads writes to the clock: room for what others will do after the restart.
    for (let call = 0; call < 20; call += 1) await witness.read([]);
    for (const name of names) {
      const stored = await readOne(witness, name);
      const expected = stored.kind === "found" ? stored.version : null;
      const result = await applyOne(
        witness,
        writeOf(recordOf(name, { ...live, generation: lost }), expected),
      );
      if (result.kind !== "applied") throw new Error(`'${name}' was not written: ${result.kind}`);
      versions.set(name, result.version ?? "");
    }
    await server.kill();
    await rm(data, { recursive: true });
    await cp(copy, data, { recursive: true });
    await server.restart();
  });

  it("a client that saw the lost writes refuses", async () => {
    await noticed(witness, "its last writes are gone");
  });

  it("whoever comes new cannot grant any key at or below a generation that was lost", async () => {
    const store = await open();
    for (const name of names) {
      let write = grantAfter(await readOne(store, name), name);
      let result = await applyOne(store, write);
      if (result.kind === "conflict") {
        write = grantAfter(result.current, name);
        result = await applyOne(store, write);
      }
      expect(result.kind).toBe("applied");
      const { generation } = write.next as LeaseRecord;
      expect(generation).toBeGreaterThan(lost);
      expect(await readOne(store, name)).toMatchObject({ record: { generation } });
    }
  });

  it("a client that was connected before, but saw nothing of what was lost, is held to the same", async () => {
    const refused = await until("it is connected again", () =>
      applyOne(idle, writeOf(recordOf("young", { generation: lost }))),
    );
    expect(refused).toMatchObject({ kind: "conflict", current: { kind: "found" } });
  });

  it("a write that only continues a live lease goes through, with its generation", async () => {
    const store = await open();
    const stored = await readOne(store, "live");
    if (stored.kind !== "found") throw new Error("the record was in the copy");
    expect(stored.record.generation).toBeLessThan(lost);
    const renewed = { ...recordOf("live", live), generation: stored.record.generation, renewals: 1 };
    const { results } = await store.apply([writeOf(renewed, stored.version), grantAfter(stored, "young")]);
    expect(results.map(({ kind }) => kind)).toEqual(["applied", "conflict"]);
    expect(await readOne(store, "live")).toMatchObject({ record: { renewals: 1 } });
  });

  it("a version whose number stands for another write now is not taken for the old one", async () => {
    const version = versions.get("live") ?? "";
    const sequence = Number.parseInt(version, 10);
    const stranger = await open();
    const standing = await readOne(stranger, "live");
    if (standing.kind !== "found") throw new Error("the record was in the copy");
    const renewed = { ...recordOf("live", live), generation: standing.record.generation, holder: "stranger" };
    await admin.putUpTo("solehold", "clock", sequence - 1);
    const other = await applyOne(stranger, writeOf(renewed, standing.version));
    expect(other).toMatchObject({ kind: "applied", version: expect.stringMatching(`^${sequence}\\.`) });
    await admin.putUpTo("solehold", "clock", sequence + 50);
    // The stream is ahead of what the witness saw by now, so it does not know that anything was lost.
    const mine = recordOf("live", { ...live, generation: lost, renewals: 1 });
    const result = await until("the witness is back", () => applyOne(witness, writeOf(mine, version)));
    expect(result).toMatchObject({ kind: "conflict", current: { record: { holder: "stranger" } } });
    expect(await readOne(stranger, "live")).toMatchObject({ record: { holder: "stranger" } });
  });
});

describe("after a restart that lost nothing", () => {
  it("everything is still there, under the same versions", async () => {
    const store = await open();
    const version = await create(store, recordOf("job"));
    await server.kill();
    await server.restart();
    const stored = await until("the store is back", () => readOne(store, "job"));
    expect(stored).toMatchObject({ kind: "found", version });
    const next = recordOf("job");
    expect(await applyOne(store, writeOf(next, version))).toMatchObject({ kind: "applied" });
  });

  it("a lease that is still held is renewed with its fence, and taken over with a higher one", async () => {
    const holder = manager(await open());
    const held = await granted(holder.acquire({ key: key("held"), holder: "worker", ttlMs: 30_000 }));
    await server.kill();
    await server.restart();
    const renewed = await until("the holder is back", async () => {
      const answer = await holder.renew({ key: key("held"), holder: "worker", token: held.token });
      return answer.kind === "applied" ? answer : null;
    });
    expect(recordFence(renewed.decision.lease)).toBe(held.fence);
    await holder.release({ key: key("held"), holder: "worker", token: held.token });
    expect(await cycle(manager(await open()), "held", 1)).toBeGreaterThan(held.fence + 1_000n);
  });
});
