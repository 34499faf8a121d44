/**
 * Redis loses what it acknowledged: FLUSHALL, an old dump, a restart without persistence, a failover to a replica that
 * lagged behind. Whoever saw more than is left notices at its next call, once, and goes on with what is there.
 */
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startProxy, startRedis } from "../../../../../scripts/engines/index.mjs";
import { keyId } from "../../../src/core/index.ts";
import type { LeaseStore } from "../../../src/store/index.ts";
import { openRedisStore, type RedisStore, type RedisStoreOptions } from "../../../src/stores/redis/index.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";

type Server = Awaited<ReturnType<typeof startRedis>>;

const closing: (() => unknown)[] = [];
let server: Server;
let admin: Redis;

beforeEach(async () => {
  // Snapshots only when a test asks for one: what is written after it is lost with the process.
  server = await startRedis({ flags: ["--appendonly", "no", "--save", "", "--enable-debug-command", "yes"] });
  admin = new Redis(server.url).on("error", () => undefined);
});

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  admin.disconnect();
  await server.stop();
});

async function open(options: Partial<RedisStoreOptions> = {}): Promise<RedisStore> {
  const store = await openRedisStore({ url: server.url, timeoutMs: 2_000, ...options });
  closing.push(() => store.close());
  return store;
}

/** That this call reports a loss. */
async function claimLoss(call: Promise<unknown>, what: string): Promise<void> {
  const error = await rejection(call);
  expect(error).toMatchObject({ name: "StoreError", kind: "data-loss", outcome: "not-applied" });
  expect(error.message).toContain(what);
  expect(error.message).toContain("lost data");
  expect(error.message).not.toContain("\n");
}

/** That a loss is reported once the server is there again. */
async function claimLossOnReturn(store: LeaseStore, what: string): Promise<void> {
  const failure = await until("the server answers again", async () => {
    const error = await rejection(store.read([]));
    return error.kind === "unreachable" || error.kind === "timeout" ? null : error;
  });
  await claimLoss(Promise.reject(failure), what);
}

async function claimGoesOn(store: LeaseStore, name = "later"): Promise<void> {
  const { key } = recordOf(name);
  const { records } = await store.read([key]);
  const [stored] = records;
  const expected = stored?.kind === "found" ? stored.version : null;
  expect(await applyOne(store, writeOf(recordOf(name), expected))).toMatchObject({ kind: "applied" });
  await store.list?.({ tenant: "default", prefix: "", limit: 1 });
}

const DELETED = "its data was deleted or replaced";
const TAIL_LOST = "its last acknowledged writes are gone";

describe("after FLUSHALL", () => {
  it.each([
    ["a write", (store: LeaseStore) => store.apply([writeOf(recordOf("other"))])],
    ["a read", (store: LeaseStore) => store.read([recordOf("job").key])],
    ["a listing", (store: LeaseStore) => store.list!({ tenant: "default", prefix: "", limit: 1 })],
  ])("%s of a client of before reports it, once, and writes nothing", async (_, call) => {
    const store = await open();
    await create(store, recordOf("job"));
    await admin.flushall();
    await claimLoss(call(store), DELETED);
    expect(await admin.keys("*")).toEqual(["{solehold:}$identity"]);
    await claimGoesOn(store);
  });

  it("every client of before reports it, also when others have begun anew and written more", async () => {
    const [one, two] = [await open(), await open()];
    await create(one, recordOf("job"));
    await two.read([recordOf("job").key]);
    await admin.flushall();
    await claimLoss(one.read([]), DELETED);
    for (let more = 0; more < 5; more += 1) await create(one, recordOf(`more/${more}`));
    await claimLoss(two.read([]), DELETED);
    await claimGoesOn(two);
    await claimGoesOn(one);
  });

  it("calls that were under way report it, too", async () => {
    const store = await open();
    await create(store, recordOf("job"));
    await admin.flushall();
    const calls = [1, 2, 3].map((number) => rejection(store.apply([writeOf(recordOf(`at-once/${number}`))])));
    for (const failure of await Promise.all(calls)) {
      // One that was sent before it was known may end with its connection, and is then unknown.
      expect(failure.kind === "data-loss" || failure.outcome === "unknown").toBe(true);
    }
    await claimGoesOn(store);
  });

  it("whoever comes new notices nothing, and no old version fits", async () => {
    const old = await open();
    const version = await create(old, recordOf("job"));
    await admin.flushall();
    const store = await open();
    expect((await store.read([recordOf("job").key])).records[0]).toEqual({ kind: "absent" });
    const renewed = await create(store, recordOf("job"));
    expect(renewed).not.toBe(version);
    expect((await applyOne(store, writeOf(recordOf("job"), version))).kind).toBe("conflict");
  });
});

describe("after an old dump was restored into the running server", () => {
  /** The process and all connections stay. */
  const restore = () => admin.call("DEBUG", "RELOAD", "NOSAVE");

  it("a client that saw more reports it, once", async () => {
    const store = await open();
    await create(store, recordOf("before"));
    await admin.save();
    const version = await create(store, recordOf("lost"));
    await restore();
    await claimLoss(store.apply([writeOf(recordOf("lost"), version)]), TAIL_LOST);
    await claimGoesOn(store);
    await claimGoesOn(store, "before");
  });

  it("another client reports it, too, although the first has written beyond what it saw", async () => {
    const [one, two] = [await open(), await open()];
    await admin.save();
    await create(one, recordOf("lost"));
    await two.read([recordOf("lost").key]);
    await restore();
    await claimLoss(one.read([]), TAIL_LOST);
    for (let more = 0; more < 5; more += 1) await create(one, recordOf(`more/${more}`));
    await claimLoss(two.read([]), DELETED);
    await claimGoesOn(two);
  });

  it("no version comes back: what was written on an old version is refused after the same number of writes", async () => {
    const store = await open();
    const first = await create(store, recordOf("again"));
    await admin.save();
    const lost = await applyOne(store, writeOf(recordOf("again", { renewals: 1 }), first));
    await restore();
    await rejection(store.read([]));
    const next = await applyOne(store, writeOf(recordOf("again", { renewals: 2 }), first));
    expect(next).toMatchObject({ kind: "applied" });
    expect(next).not.toEqual(lost);
    const stale = lost.kind === "applied" ? lost.version : null;
    expect((await applyOne(store, writeOf(recordOf("again"), stale))).kind).toBe("conflict");
  });
});

describe("after a restart", () => {
  const crash = async (): Promise<void> => {
    await server.kill();
    await server.restart();
  };

  it("without persistence a client of before reports it", async () => {
    const store = await open();
    await create(store, recordOf("job"));
    await crash();
    await claimLossOnReturn(store, DELETED);
    await claimGoesOn(store);
  });

  it("from an older dump a client that saw more reports it, also when others have written beyond that", async () => {
    const witness = await open();
    await create(witness, recordOf("before"));
    await admin.save();
    await create(witness, recordOf("lost"));
    await crash();
    const newcomer = await until("the server answers again", () => open());
    for (let more = 0; more < 5; more += 1) await create(newcomer, recordOf(`more/${more}`));
    await claimLossOnReturn(witness, TAIL_LOST);
    await claimGoesOn(witness);
    await claimGoesOn(newcomer);
  });

  it("that lost nothing nobody reports a loss, and replies tell when the server changed", async () => {
    const store = await open();
    const version = await create(store, recordOf("job"));
    await admin.save();
    await crash();
    const { records, serverChangedAtMs, storeTimeMs } = await until("the store is back", () =>
      store.read([recordOf("job").key]),
    );
    expect(records[0]).toMatchObject({ kind: "found", version });
    expect(serverChangedAtMs).toBeGreaterThan(storeTimeMs! - 60_000);
  });
});

it("after a failover to a replica that lagged, a client of before reports it although others have written more", async () => {
  const portOf = ({ url }: Server): number => Number(new URL(url).port);
  const flags = ["--appendonly", "no", "--save", "", "--replicaof", "127.0.0.1", `${portOf(server)}`];
  await admin.config("SET", "repl-diskless-sync-delay", "0");
  const replica = await startRedis({ flags });
  closing.push(() => replica.stop());
  const promoting = new Redis(replica.url);
  closing.push(() => promoting.disconnect());
  const proxy = await startProxy({ targetPort: portOf(server) });
  closing.push(() => proxy.close());
  const witness = await open({ url: proxy.through(server.url) });
  await create(witness, recordOf("before"));
  await until("the replica has it", async () =>
    (await promoting.exists(`{solehold:}${keyId(recordOf("before").key)}`)) === 1 ? true : null,
  );
  // It is promoted while the old primary still acknowledges writes.
  await promoting.replicaof("NO", "ONE");
  await create(witness, recordOf("lost"));
  const other = await open({ url: replica.url });
  for (let more = 0; more < 5; more += 1) await create(other, recordOf(`more/${more}`));
  proxy.moveTo(portOf(replica));
  proxy.cut();
  await claimLossOnReturn(witness, TAIL_LOST);
  await claimGoesOn(witness);
  await claimGoesOn(other);
});

it("a deleted or damaged identity counts as a loss, and is made anew", async () => {
  const store = await open();
  await create(store, recordOf("job"));
  await admin.del("{solehold:}$identity");
  await claimLoss(store.read([]), DELETED);
  await admin.hset("{solehold:}$identity", "identity", "nonsense");
  await admin.hdel("{solehold:}$identity", "epoch");
  await claimLoss(store.read([]), DELETED);
  await claimGoesOn(store, "job");
});
