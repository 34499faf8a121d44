import { describe, expect, it } from "vitest";
import { ManualEnv } from "../../src/env/index.ts";
import { type LeaseStore, MemoryStore } from "../../src/store/index.ts";
import { type WriterAuditEvent, WriterInstance, WriterLeaseStore } from "../../src/writer/index.ts";
import { clientWorld, freeze } from "../client/helpers.ts";
import { FaultyStore } from "../executor/faulty-store.ts";
import { describeWriterLease } from "./seed-tests.ts";

describeWriterLease("memory", {
  open: async () => {
    const env = new ManualEnv();
    return { store: new MemoryStore({ env }), pass: (ms) => env.advance(ms) };
  },
});

describe("a writer lease whose answers get lost", () => {
  function faultyWorld() {
    const store = new FaultyStore(new MemoryStore({ env: new ManualEnv() }));
    return { store, leases: new WriterLeaseStore({ store, release: "tombstone" }) };
  }

  it("is still recognised as won, refreshed and released", async () => {
    const { store, leases } = faultyWorld();
    store.writeFaults = ["reply-lost"];
    const lease = await leases.tryAcquire("db", "writer-a", 60_000);
    store.writeFaults = ["unknown-applied"];
    await leases.refresh(lease, 60_000);
    store.writeFaults = ["reply-lost"];
    await leases.release(lease);
    expect((await leases.tryAcquire("db", "writer-b", 60_000)).generation).toBe(2n);
  });

  it("is reported as a transport failure when nobody can know", async () => {
    const { store, leases } = faultyWorld();
    store.writeFaults = ["delayed"];
    await expect(leases.tryAcquire("db", "writer-a", 60_000)).rejects.toMatchObject({
      failure: { kind: "Backend", backend: "Transport" },
    });
  });

  it("keeps growing generations with tombstones", async () => {
    const { leases } = faultyWorld();
    for (let generation = 1n; generation <= 3n; generation += 1n) {
      const lease = await leases.tryAcquire("db", "writer-a", 60_000);
      expect(lease.generation).toBe(generation);
      await leases.release(lease);
    }
  });
});

describe("a store without compare-and-swap", () => {
  it("cannot be passed in: it does not compile", () => {
    const lastWriterWins = { get: async () => null, put: async () => undefined };
    // @ts-expect-error There is no `apply`, so there is no writer lease on it.
    const store: LeaseStore = lastWriterWins;
    expect(store).toBeDefined();
  });
});

describe("an instance of a database", () => {
  function instanceWorld() {
    const world = clientWorld({ holder: "instance-a" });
    const audit: WriterAuditEvent[] = [];
    const drains: string[] = [];
    const instance = (leases = world.leases, lease: "required" | "not_required" = "required") =>
      new WriterInstance({
        leases,
        databaseKey: "main",
        lease,
        ttl: "10s",
        onDrain: (reason) => drains.push(reason),
        onAudit: (event) => audit.push(event),
      });
    return { ...world, instance, audit, drains };
  }

  it("writes while it holds the lease; a second one attaches read-only and learns who writes", async () => {
    const { instance, other } = instanceWorld();
    const first = instance();
    expect(await first.attach()).toEqual({ writer: true, holder: "instance-a" });
    first.assertWritable();
    const second = instance(other("instance-b"));
    expect(await second.attach()).toEqual({ writer: false, holder: "instance-a" });
    expect(second.state).toBe("not_held");
    expect(() => second.assertWritable()).toThrow(/read-only/);
    await first.release();
    expect(await second.attach()).toMatchObject({ writer: true });
    expect(second.fence).toBe(2n);
    await second.release();
  });

  it("refuses to write before it has the lease", () => {
    const { instance } = instanceWorld();
    expect(() => instance().assertWritable()).toThrow(/does not hold/);
  });

  it("needs none when none is required", async () => {
    const { instance } = instanceWorld();
    const free = instance(undefined, "not_required");
    expect((await free.attach()).writer).toBe(true);
    free.assertWritable();
    expect(free.state).toBe("not_required");
  });

  it("closes its gate by its own clock when the store never answers again, and drains exactly once", async () => {
    const { env, store, instance, drains, audit } = instanceWorld();
    const writer = instance();
    await writer.attach();
    freeze(store);
    env.pause(20_000);
    expect(writer.state).toBe("not_held");
    expect(() => writer.assertWritable()).toThrow();
    await env.advance(60_000);
    expect(drains).toHaveLength(1);
    expect(audit.map(({ action }) => action)).toEqual(["lease/acquire", "lease/lost"]);
  });

  it("audits acquire and release with the fence", async () => {
    const { instance, audit, drains } = instanceWorld();
    const writer = instance();
    await writer.attach();
    await writer.release();
    expect(audit).toMatchObject([
      { action: "lease/acquire", fence: 1n, holderId: "instance-a", databaseKey: "main" },
      { action: "lease/release", fence: 1n },
    ]);
    expect(drains).toEqual([]);
  });
});
