/**
 * Redis loses what it acknowledged: FLUSHALL, a restart without persistence, a restart from an older
 * snapshot, a failover to a replica that lagged behind. Whoever saw more refuses; whoever did not gets fences above all that were handed out.
 */
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import { floorKey, type LeaseRecord } from "../../../src/core/index.ts";
import type { ConditionalWrite, LeaseStore, StoredRecord } from "../../../src/store/index.ts";
import { openRedisStore, type RedisStore, type RedisUrlOptions } from "../../../src/stores/redis/index.ts";
import { encodeValue } from "../../../src/stores/redis/value.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
let admin: Redis;
const opened: RedisStore[] = [];

beforeEach(async () => {
  // Snapshots only when a test asks for one: what is written after it is lost with the process.
  server = await startRedis({ flags: ["--appendonly", "no", "--save", ""] });
  admin = new Redis(server.url);
  admin.on("error", () => undefined);
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  admin.disconnect();
  await server.stop();
});

async function open(options: Partial<RedisUrlOptions> = {}): Promise<RedisStore> {
  const store = await openRedisStore({ url: server.url, ...options });
  opened.push(store);
  return store;
}

async function readOne(store: LeaseStore, name: string): Promise<StoredRecord> {
  return (await store.read([{ tenant: "default", name }])).records[0]!;
}

async function floorOf(store: LeaseStore): Promise<bigint> {
  const [floor] = (await store.read([floorKey("default")])).records;
  if (floor?.kind !== "found") throw new Error("a Redis store always has a floor");
  return floor.record.generation;
}

async function crash(): Promise<void> {
  await server.kill();
  await server.restart();
}

/** As the manager does it: the next generation after what is there, on exactly that version. */
function grantAfter(stored: StoredRecord, name: string): ConditionalWrite {
  if (stored.kind !== "found") return writeOf(recordOf(name, { generation: 1n }));
  return writeOf(recordOf(name, { generation: stored.record.generation + 1n }), stored.version);
}

async function refusal(call: Promise<unknown>): Promise<void> {
  const error = await rejection(call);
  expect(error).toMatchObject({ name: "StoreError", kind: "internal", outcome: "not-applied" });
  expect(error.message).toContain("acceptDataLoss()");
}

describe("after FLUSHALL", () => {
  it("a client that saw the data refuses every call, and writes nothing", async () => {
    const store = await open();
    const record = recordOf("job", { generation: 1n });
    const version = await create(store, record);
    await admin.flushall();
    await refusal(store.apply([writeOf(recordOf("job", { generation: 2n }), version)]));
    await refusal(store.apply([writeOf(recordOf("other"))]));
    await refusal(store.read([record.key]));
    await refusal(store.list({ tenant: "default", prefix: "", limit: 1 }));
    expect(await admin.dbsize()).toBe(0);
  });

  it("a read notices it too", async () => {
    const store = await open();
    await create(store, recordOf("job"));
    await admin.flushall();
    await refusal(store.read([{ tenant: "default", name: "job" }]));
  });

  it("whoever comes new starts above every generation of the old data", async () => {
    const before = await floorOf(await open());
    await admin.flushall();
    const after = await floorOf(await open());
    expect(after).toBeGreaterThan(before);
    expect(after - before).toBeLessThan(BigInt(60_000_000));
  });

  it("acceptDataLoss() goes on, above every generation of the old data", async () => {
    const store = await open();
    const before = await floorOf(store);
    const version = await create(store, recordOf("job", { generation: before + 1_000n }));
    await admin.flushall();
    await refusal(store.read([]));
    await store.acceptDataLoss();
    expect(await floorOf(store)).toBeGreaterThan(before + 1_000n);
    expect(await readOne(store, "job")).toEqual({ kind: "absent" });
    const stale = await applyOne(store, writeOf(recordOf("job", { generation: before + 1_001n }), version));
    expect(stale.kind).toBe("conflict");
  });

  it("acceptDataLoss() joins the data of whoever came first, instead of replacing it", async () => {
    const [one, two] = [await open(), await open()];
    await create(one, recordOf("job"));
    await create(two, recordOf("other"));
    await admin.flushall();
    await refusal(one.read([]));
    await refusal(two.read([]));
    await one.acceptDataLoss();
    const kept = await create(one, recordOf("kept"));
    await refusal(two.read([]));
    await two.acceptDataLoss();
    expect(await readOne(two, "kept")).toMatchObject({ kind: "found", version: kept });
    expect(await readOne(one, "kept")).toMatchObject({ kind: "found", version: kept });
  });

  it("it is accepted without a call after the time that was set for it", async () => {
    const store = await open({ dataLoss: { acceptAfterMs: 0 } });
    await create(store, recordOf("job"));
    await admin.flushall();
    await refusal(store.read([]));
    expect(await readOne(store, "job")).toEqual({ kind: "absent" });
  });

  it("acceptDataLoss() without a loss changes nothing", async () => {
    const store = await open();
    const version = await create(store, recordOf("job"));
    const floor = await floorOf(store);
    await store.acceptDataLoss();
    expect(await readOne(store, "job")).toMatchObject({ version });
    expect(await floorOf(store)).toBe(floor);
  });
});

describe("after a restart without persistence", () => {
  it("a client that saw the data refuses as soon as it is connected again", async () => {
    const store = await open();
    await create(store, recordOf("job"));
    await crash();
    const error = await until("the loss is noticed", async () => {
      const failure = await rejection(store.read([]));
      return failure.kind === "internal" ? failure : null;
    });
    expect(error.message).toContain("it is empty now");
  });
});

describe("after a restart from an older snapshot", () => {
  const live: Partial<LeaseRecord> = { expiresAtMs: Date.now() + 600_000 };
  const ended: Partial<LeaseRecord> = { state: "released", endedAtMs: 1 };
  let witness: RedisStore;
  let idle: RedisStore;
  let lost: bigint;

  /** The snapshot knows generation 1 of two keys; later generations, and a third key, are lost. */
  beforeEach(async () => {
    witness = await open();
    idle = await open();
    const floor = await floorOf(witness);
    lost = floor + 50n;
    await create(witness, recordOf("ended", { ...ended, generation: floor + 1n }));
    await create(witness, recordOf("live", { ...live, generation: floor + 1n }));
    await admin.save();
    for (const name of ["ended", "live"]) {
      const stored = await readOne(witness, name);
      const next = recordOf(name, { ...live, generation: lost });
      const version = stored.kind === "found" ? stored.version : null;
      expect((await applyOne(witness, writeOf(next, version))).kind).toBe("applied");
    }
    await create(witness, recordOf("young", { ...live, generation: lost }));
    await crash();
  });

  it("a client that saw the lost writes refuses", async () => {
    const error = await until("the loss is noticed", async () => {
      const failure = await rejection(witness.read([]));
      return failure.kind === "internal" ? failure : null;
    });
    expect(error.message).toContain("its last writes are gone");
  });

  it.each(["ended", "live", "young"])(
    "whoever comes new cannot grant '%s' at or below a generation that was lost",
    async (name) => {
      const store = await open();
      let write = grantAfter(await readOne(store, name), name);
      let result = await applyOne(store, write);
      if (result.kind === "conflict") {
        write = grantAfter(result.current, name);
        result = await applyOne(store, write);
      }
      expect(result.kind).toBe("applied");
      expect(write.next!.generation).toBeGreaterThan(lost);
      expect(await readOne(store, name)).toMatchObject({ record: { generation: write.next!.generation } });
    },
  );

  it("a lease that is over and shown with a raised generation is ended with that one, also in Redis", async () => {
    const store = await open();
    const name = "over";
    await admin.set(`{solehold:}default/${name}`, encodeValue(recordOf(name, { generation: 1n })));
    const shown = await readOne(store, name);
    if (shown.kind !== "found") throw new Error(`not shown: ${shown.kind}`);
    expect(shown.record.generation).toBeGreaterThan(lost);
    const next = recordOf(name, { ...shown.record, nonce: "the-end", state: "released" });
    const write = { ...writeOf(next, shown.version), replaces: shown.record };
    expect((await applyOne(store, write)).kind).toBe("applied");
    expect(await admin.get(`{solehold:}default/${name}`)).toBe(encodeValue(next));
  });

  it("a write that only continues a live lease goes through, with its generation", async () => {
    const store = await open();
    const stored = await readOne(store, "live");
    if (stored.kind !== "found") throw new Error("the record was in the snapshot");
    expect(stored.record.generation).toBeLessThan(lost);
    const renewed = { ...recordOf("live", live), generation: stored.record.generation, renewals: 1 };
    const results = (await store.apply([writeOf(renewed, stored.version), grantAfter(stored, "young")]))
      .results;
    expect(results.map(({ kind }) => kind)).toEqual(["applied", "conflict"]);
    expect(await readOne(store, "live")).toMatchObject({ record: { renewals: 1 } });
  });

  it("a client that was connected before, but saw nothing of what was lost, is held to the same", async () => {
    // Its first call must find a connection that is there already: that it is another one is the point.
    await until("all three are connected again", async () =>
      String(await admin.client("LIST"))
        .trim()
        .split("\n").length >= 3
        ? true
        : null,
    );
    const refused = await applyOne(idle, writeOf(recordOf("young", { generation: lost })));
    expect(refused).toMatchObject({ kind: "conflict", current: { kind: "found" } });
  });
});

describe("after a failover to a replica that lagged behind", () => {
  let witness: RedisStore;
  let lost: bigint;

  beforeEach(async () => {
    const { port } = new URL(server.url);
    await admin.config("SET", "repl-diskless-sync-delay", "0");
    const flags = ["--appendonly", "no", "--save", "", "--replicaof", `127.0.0.1 ${port}`];
    const replica = await startRedis({ flags });
    onTestFinished(async () => await replica.stop());
    const promoting = new Redis(replica.url);
    onTestFinished(() => promoting.disconnect());
    witness = await open();
    const ended = { state: "released", endedAtMs: 1 } as const;
    lost = (await floorOf(witness)) + 50n;
    await create(witness, recordOf("job", { ...ended, generation: lost - 1n }));
    await until("the replica has it", async () =>
      (await promoting.exists("{solehold:}default/job")) ? true : null,
    );
    // It is promoted while the old primary still takes writes, and then takes over its address.
    await promoting.replicaof("NO", "ONE");
    const stored = await readOne(witness, "job");
    if (stored.kind !== "found") throw new Error("the record was just written");
    const next = recordOf("job", { ...ended, generation: lost });
    expect((await applyOne(witness, writeOf(next, stored.version))).kind).toBe("applied");
    await server.kill();
    await promoting.config("SET", "port", port);
  });

  it("a client that saw the lost writes refuses", async () => {
    const error = await until("the loss is noticed", async () => {
      const failure = await rejection(witness.read([]));
      return failure.kind === "internal" ? failure : null;
    });
    expect(error.message).toContain("its last writes are gone");
  });

  it("whoever comes new grants above every generation that was lost", async () => {
    const store = await open();
    let write = grantAfter(await readOne(store, "job"), "job");
    let result = await applyOne(store, write);
    if (result.kind === "conflict") {
      write = grantAfter(result.current, "job");
      result = await applyOne(store, write);
    }
    expect(result.kind).toBe("applied");
    expect(write.next!.generation).toBeGreaterThan(lost);
  });
});

it("a restart that lost nothing is no loss: everything is still there", async () => {
  const store = await open();
  const version = await create(store, recordOf("job"));
  await admin.save();
  await crash();
  const stored = await until("the store is back", () => readOne(store, "job"));
  expect(stored).toMatchObject({ kind: "found", version });
});
