/** Document 004, the serverless writer lease: its own tests by name, its wire format, its errors and its lifecycle. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  compareWriterLeases,
  DEFAULT_REPLICATION_TERM,
  fencingToken,
  fromJson,
  isExpired,
  isFencedByTerm,
  ManualEnv,
  toJson,
  type WriterLease,
  WriterLeaseStore,
} from "../../../src/facades/seeds.ts";
import { type LeaseStore, MemoryStore } from "../../../src/store/index.ts";
import { openFileStore } from "../../../src/stores/file/index.ts";
import { FaultyStore } from "../../executor/faulty-store.ts";
import { describeWriterLease } from "../../writer/seed-tests.ts";

const FIELDS = ["database_key", "holder_id", "term", "generation", "acquired_at_ms", "expires_at_ms"];
const OBJECT = {
  database_key: "main",
  holder_id: "instance-uuid",
  term: 3,
  generation: 7,
  acquired_at_ms: 1_730_000_000_000,
  expires_at_ms: 1_730_000_060_000,
};
const LEASE: WriterLease = {
  databaseKey: "main",
  holderId: "instance-uuid",
  term: 3n,
  generation: 7n,
  acquiredAtMs: 1_730_000_000_000,
  expiresAtMs: 1_730_000_060_000,
};

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "solehold-seed-004-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function memory() {
  const env = new ManualEnv();
  const store = new FaultyStore(new MemoryStore({ env }));
  return { env, store, leases: new WriterLeaseStore({ store, env }) };
}

describeWriterLease("memory (004)", {
  open: async () => {
    const env = new ManualEnv();
    return { store: new MemoryStore({ env }), pass: (ms) => env.advance(ms) };
  },
});

describe("004: the wire format", () => {
  it("is leases/{database_key}.lease.json with the six fields", async () => {
    const path = folder();
    const store = await openFileStore({ folder: path });
    const lease = await new WriterLeaseStore({ store }).tryAcquire("main", "writer-a", 60_000);
    const published = JSON.parse(readFileSync(join(path, "leases/main.lease.json"), "utf8")) as object;
    expect(Object.keys(published).filter((name) => name !== "solehold")).toEqual(FIELDS);
    expect(published).toMatchObject(JSON.parse(toJson(lease)) as object);
    await store.close();
  });

  it("to_json and from_json: the document's example, and 64 bits stay exact", () => {
    expect(JSON.parse(toJson(LEASE))).toEqual(OBJECT);
    expect(fromJson(JSON.stringify(OBJECT))).toEqual(LEASE);
    const large = { ...LEASE, term: 2n ** 64n - 1n, generation: 2n ** 53n + 1n };
    expect(fromJson(toJson(large))).toEqual(large);
  });

  it("from_json: a legacy object without a term has DEFAULT_REPLICATION_TERM, 1, and further fields are ignored", () => {
    const { term: _term, ...legacy } = OBJECT;
    expect(fromJson(JSON.stringify({ ...legacy, future: [1, 2] })).term).toBe(DEFAULT_REPLICATION_TERM);
    expect(DEFAULT_REPLICATION_TERM).toBe(1n);
  });

  it.each(FIELDS.filter((name) => name !== "term"))("InvalidFormat names %s when it is missing", (name) => {
    const { [name as keyof typeof OBJECT]: _left, ...rest } = OBJECT;
    expect(() => fromJson(JSON.stringify(rest))).toThrow(
      expect.objectContaining({ kind: "InvalidFormat", message: expect.stringContaining(name) }),
    );
  });

  it("InvalidFormat: what is no object, and what a published object that cannot be read makes of every call", async () => {
    for (const text of ["", "[]", "null", "{", '"x"'])
      expect(() => fromJson(text)).toThrow(expect.objectContaining({ kind: "InvalidFormat" }));
    const path = folder();
    const store = await openFileStore({ folder: path });
    const leases = new WriterLeaseStore({ store });
    await leases.tryAcquire("main", "writer-a", 60_000);
    writeFileSync(join(path, "leases/main.lease.json"), "{}");
    await expect(leases.current("main")).rejects.toMatchObject({ kind: "InvalidFormat" });
    await store.close();
  });

  it("a legacy object on disk is read, and taken over once it has expired", async () => {
    const path = folder();
    const store = await openFileStore({ folder: path });
    const leases = new WriterLeaseStore({ store });
    const first = await leases.tryAcquire("main", "writer-a", 60_000);
    const { term: _term, ...legacy } = JSON.parse(toJson({ ...first, expiresAtMs: 1 })) as typeof OBJECT;
    writeFileSync(join(path, "leases/main.lease.json"), JSON.stringify(legacy));
    expect(await leases.current("main")).toMatchObject({ term: 1n, holderId: "writer-a" });
    expect(await leases.tryAcquire("main", "writer-b", 60_000)).toMatchObject({
      holderId: "writer-b",
      term: 1n,
      generation: first.generation + 1n,
    });
    await store.close();
  });
});

describe("004: WriterLease", () => {
  it("is_expired at exactly expires_at_ms, and fenced_by_term behind the current term only", () => {
    expect(isExpired(LEASE, LEASE.expiresAtMs - 1)).toBe(false);
    expect(isExpired(LEASE, LEASE.expiresAtMs)).toBe(true);
    expect([2n, 3n, 4n].map((term) => isFencedByTerm(LEASE, term))).toEqual([false, false, true]);
  });

  it("fencing_token orders by term, then generation", () => {
    const ordered = [
      { ...LEASE, term: 1n, generation: 99n },
      { ...LEASE, term: 2n, generation: 1n },
      { ...LEASE, term: 2n, generation: 2n },
    ];
    expect([...ordered].reverse().sort(compareWriterLeases)).toEqual(ordered);
    expect(fencingToken(LEASE)).toBe((3n << 64n) | 7n);
  });
});

describe("004: errors", () => {
  it("Held has the current lease and now_ms", async () => {
    const { env, leases } = memory();
    await leases.tryAcquire("main", "writer-a", 60_000);
    await env.advance(1_000);
    await expect(leases.tryAcquire("main", "writer-b", 60_000)).rejects.toMatchObject({
      failure: { kind: "Held", current: { holderId: "writer-a", generation: 1n }, nowMs: env.wallMs() },
    });
  });

  it("LostRace has the attempted holder and what was observed", async () => {
    const { store, leases } = memory();
    const rival = new WriterLeaseStore({ store });
    const apply = store.apply.bind(store);
    // Between the read and the write another writes, and lets go again.
    store.apply = async (writes) => {
      store.apply = apply;
      await rival.release(await rival.tryAcquire("main", "rival", 60_000));
      const lease = await rival.tryAcquire("main", "writer-a", 60_000);
      expect(lease.holderId).toBe("writer-a");
      return await apply(writes);
    };
    await expect(leases.tryAcquire("main", "writer-a", 60_000)).rejects.toMatchObject({
      failure: { kind: "LostRace", attemptedHolder: "writer-a", observed: { holderId: "writer-a" } },
    });
  });

  it("a failed precondition with a live other holder is Held", async () => {
    const { store, leases } = memory();
    const rival = new WriterLeaseStore({ store });
    const apply = store.apply.bind(store);
    store.apply = async (writes) => {
      store.apply = apply;
      await rival.tryAcquire("main", "rival", 60_000);
      return await apply(writes);
    };
    await expect(leases.tryAcquire("main", "writer-a", 60_000)).rejects.toMatchObject({
      failure: { kind: "Held", current: { holderId: "rival" } },
    });
  });

  it("Stale has the attempted holder, its generation, and what was observed or null", async () => {
    const { env, leases } = memory();
    const lease = await leases.tryAcquire("main", "writer-a", 1);
    await env.advance(10);
    await leases.tryAcquire("main", "writer-b", 60_000);
    const stale = { kind: "Stale", attemptedHolder: "writer-a", attemptedGeneration: 1n };
    for (const call of [leases.refresh(lease, 60_000), leases.release(lease)])
      await expect(call).rejects.toMatchObject({ failure: { ...stale, observed: { holderId: "writer-b" } } });
    const gone = { ...lease, databaseKey: "nowhere" };
    await expect(leases.refresh(gone, 60_000)).rejects.toMatchObject({
      failure: { ...stale, observed: null },
    });
  });

  it("Fenced comes before Held, for the same holder and on an expired lease too", async () => {
    const { env, leases } = memory();
    await leases.tryAcquireForTerm("main", "writer-a", 60_000, 5n);
    const fenced = { failure: { kind: "Fenced", attemptedTerm: 4n, currentTerm: 5n } };
    await expect(leases.tryAcquireForTerm("main", "writer-b", 60_000, 4n)).rejects.toMatchObject(fenced);
    await expect(leases.tryAcquireForTerm("main", "writer-a", 60_000, 4n)).rejects.toMatchObject(fenced);
    await env.advance(60_000);
    await expect(leases.tryAcquireForTerm("main", "writer-b", 60_000, 4n)).rejects.toMatchObject(fenced);
  });

  it("Backend: Config for a key that cannot be one, Transport when nobody can know", async () => {
    const { store, leases } = memory();
    for (const key of ["", " main", "a\0b", "$own"])
      await expect(leases.tryAcquire(key, "writer-a", 60_000)).rejects.toMatchObject({
        failure: { kind: "Backend", backend: "Config" },
      });
    await expect(leases.tryAcquire("main", "writer-a", 0)).rejects.toMatchObject({
      failure: { kind: "Backend", backend: "Config" },
    });
    store.writeFaults = ["delayed"];
    await expect(leases.tryAcquire("main", "writer-a", 60_000)).rejects.toMatchObject({
      failure: { kind: "Backend", backend: "Transport" },
    });
  });

  it("a backend without compare-and-swap does not compile", () => {
    const lastWriterWins = { get: async () => null, put: async () => undefined };
    // @ts-expect-error There is no `apply`, so there is no writer lease on it.
    const store: LeaseStore = lastWriterWins;
    expect(store).toBeDefined();
  });
});

describe("004: LeaseStore", () => {
  it("current: what is published, and null where nothing ever was", async () => {
    const { leases } = memory();
    expect(await leases.current("main")).toBeNull();
    const lease = await leases.tryAcquire("main", "writer-a", 60_000);
    expect(await leases.current("main")).toEqual(lease);
  });

  it("generation is 1, then old + 1, also for the same holder", async () => {
    const { leases } = memory();
    const generations = [];
    for (let round = 0; round < 3; round += 1)
      generations.push((await leases.tryAcquire("main", "writer-a", 60_000)).generation);
    expect(generations).toEqual([1n, 2n, 3n]);
  });

  it("expires_at is now + ttl, and any ttl above 0 is good", async () => {
    const { env, leases } = memory();
    const lease = await leases.tryAcquire("main", "writer-a", 1);
    expect(lease.expiresAtMs).toBe(env.wallMs() + 1);
    await env.advance(1);
    expect((await leases.tryAcquire("main", "writer-b", 60_000)).expiresAtMs).toBe(env.wallMs() + 60_000);
  });

  it("refresh of an expired lease that nobody claimed succeeds and sets only expires_at_ms", async () => {
    const { env, leases } = memory();
    const lease = await leases.tryAcquireForTerm("main", "writer-a", 1_000, 5n);
    await env.advance(5_000);
    const refreshed = await leases.refresh(lease, 60_000);
    expect(refreshed).toEqual({ ...lease, expiresAtMs: env.wallMs() + 60_000 });
    expect(await leases.current("main")).toEqual(refreshed);
  });

  it("release deletes, so the next generation is 1; with tombstones it is the next one", async () => {
    for (const [release, next] of [
      ["delete", 1n],
      ["tombstone", 2n],
    ] as const) {
      const env = new ManualEnv();
      const leases = new WriterLeaseStore({ store: new MemoryStore({ env }), env, release });
      await leases.release(await leases.tryAcquire("main", "writer-a", 60_000));
      expect((await leases.tryAcquire("main", "writer-b", 60_000)).generation).toBe(next);
    }
  });

  it("local files: of 16 writers in this process one wins, and no temporary file is left", async () => {
    const path = folder();
    const store = await openFileStore({ folder: path });
    const leases = new WriterLeaseStore({ store });
    const attempts = await Promise.allSettled(
      Array.from({ length: 16 }, (_, index) => leases.tryAcquire("main", `writer-${index}`, 60_000)),
    );
    expect(attempts.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(readdirSync(join(path, "leases"))).toEqual(["main.lease.json"]);
    await store.close();
  });
});
