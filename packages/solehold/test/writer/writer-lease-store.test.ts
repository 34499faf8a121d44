/** The writer lease store in the words of its document: what is published, who won, and what cannot be a backend. */
import { describe, expect, it } from "vitest";
import { MAX_U64 } from "../../src/core/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { type LeaseStore, MemoryStore, StoreError } from "../../src/store/index.ts";
import { WriterLeaseStore } from "../../src/writer/index.ts";
import { FaultyStore } from "../executor/faulty-store.ts";

const HOUR_MS = 3_600_000;

function world(options: Partial<ConstructorParameters<typeof WriterLeaseStore>[0]> = {}) {
  const env = new ManualEnv();
  const store = new MemoryStore({ env });
  return { env, store, leases: new WriterLeaseStore({ store, env, ...options }) };
}

/** A store on which a rival's write follows at once on every write that it applies: it breaks its promise. */
function breached(store: MemoryStore): LeaseStore {
  return {
    name: store.name,
    capabilities: store.capabilities,
    now: () => store.now(),
    read: (keys) => store.read(keys),
    apply: async (writes) => {
      const reply = await store.apply(writes);
      for (const [index, { key, next }] of writes.entries()) {
        const result = reply.results[index];
        if (result?.kind !== "applied" || next === null) continue;
        const rival = { ...next, holder: "rival", generation: next.generation + 1n, nonce: "rival" };
        await store.apply([{ key, expected: result.version, next: rival }]);
      }
      return reply;
    },
    close: () => store.close(),
  };
}

describe("refresh", () => {
  it("returns exactly what is published, whatever term it was given", async () => {
    const { leases } = world();
    const lease = await leases.tryAcquireForTerm("db", "writer-a", 60_000, 5n);
    const refreshed = await leases.refresh({ ...lease, term: 6n }, 60_000);
    expect(refreshed).toEqual(await leases.current("db"));
    expect(refreshed.term).toBe(5n);
  });

  it("with a shorter ttl publishes now + ttl", async () => {
    const { env, leases } = world();
    const lease = await leases.tryAcquire("db", "writer-a", 60_000);
    await env.advance(100);
    const refreshed = await leases.refresh(lease, 1_000);
    expect(refreshed.expiresAtMs).toBe(lease.acquiredAtMs + 1_100);
    expect(await leases.current("db")).toEqual(refreshed);
  });

  it("with a shorter ttl keeps the longer promise where that is wanted", async () => {
    const { leases } = world({ shorten: "keep-longest" });
    const lease = await leases.tryAcquire("db", "writer-a", 60_000);
    expect((await leases.refresh(lease, 1_000)).expiresAtMs).toBe(lease.expiresAtMs);
  });
});

describe("tryAcquire", () => {
  it("reads again after its write, and has lost the race if another stands there", async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    const leases = new WriterLeaseStore({ store: breached(store), env });
    await expect(leases.tryAcquire("db", "writer-a", 60_000)).rejects.toMatchObject({
      failure: { kind: "LostRace", attemptedHolder: "writer-a", observed: { holderId: "rival" } },
    });
  });

  it("does not call an expired lease held whose generations are used up", async () => {
    const { env, store, leases } = world();
    await leases.tryAcquire("db", "writer-a", 1_000);
    const key = { tenant: "default", name: "db" };
    const [stored] = (await store.read([key])).records;
    if (stored?.kind !== "found") throw new Error("expected a record");
    await store.apply([{ key, expected: stored.version, next: { ...stored.record, generation: MAX_U64 } }]);
    await env.advance(1_000);
    await expect(leases.tryAcquire("db", "writer-b", 60_000)).rejects.toMatchObject({
      failure: { kind: "Backend", backend: "Config" },
      message: "db: its fences are used up: use another name",
    });
  });

  it("takes any ttl above zero, or none above the cap that it was given", async () => {
    const { leases } = world();
    const lease = await leases.tryAcquire("db", "writer-a", 30 * 24 * HOUR_MS);
    expect(lease.expiresAtMs - lease.acquiredAtMs).toBe(30 * 24 * HOUR_MS);
    const capped = world({ maxTtlMs: HOUR_MS }).leases;
    await expect(capped.tryAcquire("db", "writer-a", HOUR_MS + 1)).rejects.toMatchObject({
      failure: { kind: "Backend", backend: "Config" },
      message: `ttlMs must be from 1 to ${HOUR_MS} ms under this policy`,
    });
    await expect(capped.tryAcquire("db", "writer-a", 0)).rejects.toMatchObject({ kind: "Backend" });
  });

  it("has lost the race, not its connection, when the server says that another write got in the way", async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    const cause = new StoreError("conflict", "409", { outcome: "unknown" });
    const conflicting: LeaseStore = {
      name: store.name,
      capabilities: store.capabilities,
      now: () => store.now(),
      read: (keys) => store.read(keys),
      apply: async (writes) => ({
        storeTimeMs: store.now(),
        results: writes.map(() => ({ kind: "unknown", cause }) as const),
      }),
      close: () => store.close(),
    };
    const leases = new WriterLeaseStore({ store: conflicting, env });
    await expect(leases.tryAcquire("db", "writer-a", 60_000)).rejects.toMatchObject({
      failure: { kind: "LostRace", observed: null },
    });
  });
});

describe("a backend without compare-and-swap", () => {
  it.each([
    ["only get and put", { get: async () => null, put: async () => undefined }],
    [
      "everything but apply",
      { name: "x", capabilities: {}, read: async () => null, close: async () => undefined },
    ],
    ["nothing", undefined],
  ])("that has %s is refused by the constructor, also from JavaScript", (_what, backend) => {
    const create = () => new WriterLeaseStore({ store: backend as unknown as LeaseStore });
    expect(create).toThrow(/cannot compare and swap.*pass a LeaseStore/);
  });

  it("is accepted when it can, behind another", () => {
    expect(() => new WriterLeaseStore({ store: new FaultyStore(new MemoryStore()) })).not.toThrow();
  });
});
