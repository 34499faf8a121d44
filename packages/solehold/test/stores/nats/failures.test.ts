/** A server that stops, dies, comes back, or is cut off: what a call ends with, and that nothing breaks. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { connect, type Leases } from "../../../src/client/index.ts";
import { keyId } from "../../../src/core/index.ts";
import { realEnv } from "../../../src/env/index.ts";
import { type LeaseStore, StoreError } from "../../../src/store/index.ts";
import { NatsCalls } from "../../../src/stores/nats/calls.ts";
import { connectNats, loadNats } from "../../../src/stores/nats/client.ts";
import { DoubtfulData } from "../../../src/stores/nats/errors.ts";
import { type NatsStoreOptions, openNatsStore } from "../../../src/stores/nats/index.ts";
import { NatsJoining } from "../../../src/stores/nats/joining.ts";
import { settingsFrom } from "../../../src/stores/nats/options.ts";
import type { NatsSession } from "../../../src/stores/nats/session.ts";
import { applyWrites } from "../../../src/stores/nats/writing.ts";
import { type Engine, startNats, startProxy } from "../../engines/index.ts";
import { applyOne, create, HIGH, recordOf, rejection, until, writeOf } from "../records.ts";
import { Admin } from "./admin.ts";
import { startCutter, startTunnel } from "./faults.ts";

let server: Engine;
let admin: Admin;
const open: LeaseStore[] = [];
const clients: Leases[] = [];
const strays: unknown[] = [];
const noteStray = (error: unknown): void => void strays.push(error);

beforeAll(async () => {
  process.on("unhandledRejection", noteStray).on("uncaughtException", noteStray);
  server = await startNats();
  admin = new Admin(server.url);
});

afterEach(async () => {
  await server.resume();
  for (const store of open.splice(0)) await store.close();
  for (const leases of clients.splice(0)) await leases.close();
  expect(strays.splice(0)).toEqual([]);
});

afterAll(async () => {
  process.off("unhandledRejection", noteStray).off("uncaughtException", noteStray);
  await server?.stop();
});

async function opened(options: Partial<NatsStoreOptions> = {}) {
  const store = await openNatsStore({ url: server.url, ...options });
  open.push(store);
  return store;
}

async function client(): Promise<Leases> {
  const leases = await connect(server.url);
  clients.push(leases);
  return leases;
}

describe("a server that stands still", () => {
  it("costs one timeout: writes are unknown, reads fail, and all works again after", async () => {
    const store = await opened({ timeoutMs: 500 });
    const version = await create(store, recordOf("stopped"));
    const record = recordOf("stopped", { generation: HIGH + 1n });
    await server.pause();
    const write = await rejection(store.apply([writeOf(record, version)]));
    expect(write).toMatchObject({ name: "StoreError", kind: "timeout", outcome: "unknown" });
    expect((await rejection(store.read([record.key]))).outcome).toBe("not-applied");
    await server.resume();
    const stored = await until("the store works again", async () => {
      const [found] = (await store.read([record.key])).records;
      return found?.kind === "found" && found.version !== version ? found : null;
    });
    expect(stored.record.nonce).toBe(record.nonce);
  });

  it("for longer than the ttl: the holder knows in time, and whoever comes next has a higher fence", async () => {
    const [holder, other] = [await client(), await client()];
    const lease = await holder.acquire("paused", { ttl: 800 });
    await server.pause();
    await new Promise<void>((resolve) => lease.signal.addEventListener("abort", () => resolve()));
    expect(() => lease.assertHeld()).toThrow();
    await server.resume();
    const next = await other.acquire("paused", { ttl: 30_000, wait: "2m" });
    expect(next.fence).toBeGreaterThan(lease.fence);
    await next.release();
  });
});

/** What the bucket holds of a lease, read as any tool would. */
async function stateOf(name: string) {
  const reader = await opened();
  const [stored] = (await reader.read([{ tenant: "default", name }])).records;
  if (stored?.kind !== "found") throw new Error(`there is no lease ${keyId({ tenant: "default", name })}`);
  return stored.record;
}

describe("a server that is killed", () => {
  it("is reported as unreachable, and found again with all that it acknowledged", async () => {
    const store = await opened({ timeoutMs: 700 });
    const first = recordOf("killed");
    const version = await create(store, first);
    await server.kill();
    const lost = await rejection(store.apply([writeOf(recordOf("killed/later"))]));
    expect(lost).toMatchObject({ name: "StoreError", kind: "unreachable" });
    expect(lost.message).not.toContain("\n");
    await server.restart();
    const stored = await until("the record is there again", async () => {
      const [found] = (await store.read([first.key])).records;
      return found?.kind === "found" ? found : null;
    });
    expect(stored.version).toBe(version);
  });

  it("while a lease is held does not cost the lease when it is back in time", async () => {
    const [holder, other] = [await client(), await client()];
    const lease = await holder.acquire("held", { ttl: 3_000 });
    const { renewals } = await stateOf("held");
    await server.kill();
    await server.restart();
    await until("the lease was renewed after the restart", async () =>
      (await stateOf("held")).renewals > renewals ? true : null,
    );
    lease.assertHeld();
    expect(await other.tryAcquire("held")).toMatchObject({ ok: false, reason: "LEASE_HELD_BY_OTHER" });
    const { fence } = lease;
    await lease.release();
    const next = await other.acquire("held", { ttl: 30_000, wait: "2m" });
    expect(next.fence).toBeGreaterThan(fence);
    await next.release();
  });
});

describe("a call in flight", () => {
  it("is unknown when its connection is reset, and is never sent a second time", async () => {
    const proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
    try {
      const store = await opened({ url: proxy.through(server.url) });
      const direct = await opened();
      const first = recordOf("reset");
      const version = await create(store, first);
      proxy.dropReplies();
      const dropped = proxy.nextDroppedReply();
      const second = recordOf("reset", { generation: HIGH + 1n });
      const call = rejection(store.apply([writeOf(second, version)]));
      await dropped;
      proxy.heal();
      expect(await call).toMatchObject({ kind: "unreachable", outcome: "unknown" });
      const [applied] = (await direct.read([first.key])).records;
      expect(applied).toMatchObject({ kind: "found", record: { nonce: second.nonce } });
      await until("the client is back", async () => (await store.read([first.key])).records);
      expect((await direct.read([first.key])).records).toEqual([applied]);
    } finally {
      await proxy.close();
    }
  });

  it("on a connection that died without a word ends after one timeout, and the next has another", async () => {
    const tunnel = await startTunnel(Number(new URL(server.url).port));
    const store = await opened({ url: tunnel.url, timeoutMs: 500 });
    tunnel.swallow();
    expect(await rejection(store.read([]))).toMatchObject({ kind: "timeout" });
    expect((await store.read([])).records).toEqual([]);
    await store.close();
    tunnel.close();
  });

  it("of a closed store is rejected, and so is every later one", async () => {
    const store = await opened();
    await server.pause();
    const call = rejection(store.apply([writeOf(recordOf("closing"))]));
    await new Promise((resolve) => setImmediate(resolve));
    await store.close();
    expect(await call).toMatchObject({ kind: "closed", outcome: "unknown" });
    expect(await rejection(store.read([]))).toMatchObject({ kind: "closed", outcome: "not-applied" });
  });

  it("to a store without a connection was not sent, and says so", async () => {
    const store = await opened({ timeoutMs: 300 });
    await server.kill();
    await rejection(store.read([]));
    const refused = await rejection(store.apply([writeOf(recordOf("never-sent"))]));
    await server.restart();
    expect(refused).toMatchObject({ name: "StoreError", kind: "unreachable", outcome: "not-applied" });
    expect(refused.message).toContain("nothing listens there");
  });
});

describe("a create", () => {
  async function joined(bucket: string): Promise<NatsSession> {
    const settings = settingsFrom({ url: server.url, bucket });
    return new NatsJoining(realEnv, settings).join(await connectNats(await loadNats(), settings));
  }

  it("whose look at the stream fails is unknown, whatever the server said to the look", async () => {
    const session = await joined("solehold");
    session.check = () =>
      Promise.reject(Object.assign(new Error("JetStream is not ready"), { code: 10_008 }));
    const record = recordOf("unchecked");
    const error = await rejection(applyWrites(session, [writeOf(record)]));
    await session.client.connection.close();
    expect(error).toMatchObject({ name: "StoreError", kind: "unreachable", outcome: "unknown" });
    const [stored] = (await (await opened()).read([record.key])).records;
    expect(stored).toMatchObject({ kind: "found", record: { nonce: record.nonce } });
  });

  it("that cannot be looked after, because the server died meanwhile, is unknown", async () => {
    const calls = new NatsCalls(
      realEnv,
      await loadNats(),
      settingsFrom({ url: server.url, timeoutMs: 1_000 }),
    );
    const doubtful = async (): Promise<never> => {
      await server.kill();
      throw new DoubtfulData();
    };
    expect(await rejection(calls.call("unknown", doubtful))).toMatchObject({ outcome: "unknown" });
    await calls.close();
    await server.restart();
  });

  it("that is stored right after a purge, where nobody sees it, is no grant", async () => {
    const session = await joined("purged");
    const put = session.put.bind(session);
    session.put = async (...args) => {
      await admin.purgeBucket("purged");
      return put(...args);
    };
    const error = await rejection(applyWrites(session, [writeOf(recordOf("unseen"))]));
    await session.client.connection.close();
    expect(error).toMatchObject({ name: "StoreError", outcome: "unknown" });
  });
});

describe("a connection that ends at any byte", () => {
  it("fails every call with a StoreError that is right about the write, and nothing else breaks", async () => {
    const cutter = await startCutter(Number(new URL(server.url).port));
    const direct = await opened();
    const outcomes = new Set<string>();
    for (let bytes = 1; bytes < 4_000; bytes += Math.ceil(bytes / 7)) {
      cutter.endAfter(Number.POSITIVE_INFINITY);
      const store = await openNatsStore({ url: cutter.url, timeoutMs: 2_000 });
      const watch = await store.watch({ tenant: null, prefix: "" }, () => undefined);
      cutter.endAfter(bytes);
      // The first meets the end of the old connection, the others that of a new one.
      for (const name of ["first", "second", "third"]) {
        const record = recordOf(`cut/${bytes}/${name}`);
        const result = await store.apply([writeOf(record)]).catch((error: unknown) => error);
        const [stored] = (await direct.read([record.key])).records;
        const outcome = result instanceof StoreError ? result.outcome : "applied";
        outcomes.add(outcome);
        if (outcome === "not-applied") expect(stored).toEqual({ kind: "absent" });
        if (outcome === "applied") expect(stored).toMatchObject({ record: { nonce: record.nonce } });
      }
      await watch.close();
      await store.close();
    }
    cutter.close();
    expect(outcomes).toEqual(new Set(["unknown", "not-applied", "applied"]));
  });
});

describe("a bucket", () => {
  it("whose account is full refuses and says so, and what was there stays", async () => {
    const small = await startNats({
      settings: [
        "accounts { small { jetstream: { max_file: 8000 }, users: [{ user: small, password: small }] } }",
      ],
    });
    try {
      const url = small.url.replace("//", "//small:small@");
      const store = await opened({ url });
      const writes = Array.from({ length: 30 }, (_, index) => writeOf(recordOf(`full/${index}`)));
      const { results } = await store.apply(writes);
      const refused = results.flatMap((result) => (result.kind === "unknown" ? [result.cause] : []));
      expect(refused.length).toBeGreaterThan(3);
      for (const cause of refused) expect(cause).toMatchObject({ kind: "full", outcome: "not-applied" });
      const alone = await rejection(store.apply([writeOf(recordOf("more", { note: "x".repeat(200) }))]));
      expect(alone).toMatchObject({ kind: "full", outcome: "not-applied" });
      expect(alone.message).toContain("raise the limit");
      const kept = (await new Admin(url).keys("solehold")).filter((key) => key.includes(".full."));
      expect(kept).toHaveLength(results.length - refused.length);
    } finally {
      await small.stop();
    }
  });

  it("whose keys were deleted by a tool of NATS lets them be created again, many at once", async () => {
    const store = await opened({ bucket: "deleted" });
    const records = Array.from({ length: 20 }, (_, index) => recordOf(`again/${index}`));
    await store.apply(records.map((next) => writeOf(next)));
    const keys = (await admin.keys("deleted")).filter((key) => key.includes(".again."));
    await admin.delete("deleted", keys);
    const read = await store.read(records.map(({ key }) => key));
    expect(new Set(read.records.map(({ kind }) => kind))).toEqual(new Set(["absent"]));
    const { results } = await store.apply(records.map(({ key }) => writeOf(recordOf(key.name))));
    expect(new Set(results.map(({ kind }) => kind))).toEqual(new Set(["applied"]));
    // And of many who want the same deleted key, one gets it.
    await admin.delete(
      "deleted",
      keys.filter((key) => key.endsWith(".again.0")),
    );
    const racers = await Promise.all(
      Array.from({ length: 16 }, () => applyOne(store, writeOf(recordOf("again/0")))),
    );
    expect(racers.filter(({ kind }) => kind === "applied")).toHaveLength(1);
    expect(racers.filter(({ kind }) => kind === "conflict")).toHaveLength(15);
  });
});
