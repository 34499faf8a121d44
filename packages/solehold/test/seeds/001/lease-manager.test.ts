/** Document 001, the lease manager for actors, in its own words: `LeaseManager` and `MemoryLeaseManager`. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  type LeaseManager,
  LeaseManagerError,
  type LeaseManagerOptions,
  ManualEnv,
  MemoryLeaseManager,
  StoreLeaseManager,
} from "../../../src/facades/seeds.ts";
import { MemoryStore } from "../../../src/store/index.ts";
import { openFileStore } from "../../../src/stores/file/index.ts";

/** The document's vectors: duration 5000, at 1000. */
function managed(options: LeaseManagerOptions = {}) {
  const env = new ManualEnv({ wallMs: 1_000 });
  const manager: LeaseManager = new MemoryLeaseManager({ env, leaseDurationMs: 5_000, ...options });
  const at = async (ms: number): Promise<void> => await env.advance(ms - env.wallMs());
  return { env, manager, at };
}

async function kindOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (error) {
    if (error instanceof LeaseManagerError) return error.kind;
    throw error;
  }
}

describe("001: Lease", () => {
  it("has holder and expiry", async () => {
    const { manager } = managed();
    expect(await manager.acquire("n1", "actor-1")).toMatchObject({ holder: "n1", expiry: 6_000 });
  });

  it("has a fencing counter: 1 at first, +1 per grant, unchanged by renewal, kept over expiry and release", async () => {
    const { manager, at } = managed();
    const fences = [(await manager.acquire("n1", "a")).fencingToken];
    expect((await manager.renew("n1", "a")).fencingToken).toBe(1n);
    await at(6_000);
    fences.push((await manager.acquire("n2", "a")).fencingToken);
    await manager.release("n2", "a");
    fences.push((await manager.acquire("n1", "a")).fencingToken);
    expect(fences).toEqual([1n, 2n, 3n]);
  });

  it("keeps its fencing counter over a restart, from a store on disk", async () => {
    const folder = mkdtempSync(join(tmpdir(), "solehold-seed-001-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const fences: bigint[] = [];
    for (const node of ["n1", "n2"]) {
      const manager = new StoreLeaseManager(await openFileStore({ folder }), { leaseDurationMs: 1_000 });
      fences.push((await manager.acquire(node, "actor-1")).fencingToken);
      await manager.release(node, "actor-1");
      await manager.close();
    }
    expect(fences).toEqual([1n, 2n]);
  });
});

describe("001: LeaseManager", () => {
  it("is_valid: at 1000 and 5999, not at 6000, and never for another node", async () => {
    const { manager, at } = managed();
    await manager.acquire("n1", "actor-1");
    expect(await manager.isValid("n1", "actor-1")).toBe(true);
    await at(5_999);
    expect(await manager.isValid("n1", "actor-1")).toBe(true);
    expect(await manager.isValid("n2", "actor-1")).toBe(false);
    await at(6_000);
    expect(await manager.isValid("n1", "actor-1")).toBe(false);
    expect(await manager.isValid("n1", "actor-2")).toBe(false);
  });

  it("acquire: at 5999 n2 is refused, naming n1 and 6000", async () => {
    const { manager, at } = managed();
    await manager.acquire("n1", "actor-1");
    await at(5_999);
    await expect(manager.acquire("n2", "actor-1")).rejects.toMatchObject({
      kind: "LeaseHeldByOther",
      holder: "n1",
      expiry: 6_000,
    });
  });

  it("ExpiredLeaseClaimable: at 6000 n2 is granted until 11000", async () => {
    const { manager, at } = managed();
    await manager.acquire("n1", "actor-1");
    await at(6_000);
    expect(await manager.acquire("n2", "actor-1")).toMatchObject({ holder: "n2", expiry: 11_000 });
  });

  it("renew: at 3000 the expiry is 8000 and renewals 1; at 6000 it is LeaseExpired", async () => {
    const { manager, at } = managed();
    await manager.acquire("n1", "actor-1");
    await at(3_000);
    expect(await manager.renew("n1", "actor-1")).toMatchObject({ expiry: 8_000, renewals: 1 });
    await at(8_000);
    expect(await kindOf(manager.renew("n1", "actor-1"))).toBe("LeaseExpired");
  });

  it("RenewalRequiresOwnership: another node is NotLeaseHolder, on a live and on an expired lease", async () => {
    const { manager, at } = managed();
    await manager.acquire("n1", "actor-1");
    expect(await kindOf(manager.renew("n2", "actor-1"))).toBe("NotLeaseHolder");
    expect(await kindOf(manager.release("n2", "actor-1"))).toBe("NotLeaseHolder");
    await at(6_000);
    expect(await kindOf(manager.renew("n2", "actor-1"))).toBe("NotLeaseHolder");
  });

  it("RenewalRequiresOwnership: a manager that did not acquire it cannot renew in the holder's name", async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    await new StoreLeaseManager(store, { env }).acquire("n1", "actor-1");
    expect(await kindOf(new StoreLeaseManager(store, { env }).renew("n1", "actor-1"))).toBe("NotLeaseHolder");
  });

  it("renew: the order is not found, not holder, expired", async () => {
    const { manager, at } = managed();
    expect(await kindOf(manager.renew("n2", "actor-1"))).toBe("NotFound");
    await manager.acquire("n1", "actor-1");
    await at(9_000);
    expect(await kindOf(manager.renew("n2", "actor-1"))).toBe("NotLeaseHolder");
    expect(await kindOf(manager.renew("n1", "actor-1"))).toBe("LeaseExpired");
  });

  it("release: frees it for another, and works on an expired lease that nobody took", async () => {
    const { manager, at } = managed();
    await manager.acquire("n1", "actor-1");
    await manager.release("n1", "actor-1");
    expect(await manager.getLease("actor-1")).toBeNull();
    await manager.acquire("n2", "actor-1");
    await at(7_000);
    await manager.release("n2", "actor-1");
    expect(await manager.acquire("n1", "actor-1")).toMatchObject({ holder: "n1" });
  });

  it("acquire: the holder of a live lease is refused a second one", async () => {
    const { manager } = managed();
    await manager.acquire("n1", "actor-1");
    expect(await kindOf(manager.acquire("n1", "actor-1"))).toBe("AlreadyHeld");
  });

  it("get_lease: the lease, live or expired, and null where there is none", async () => {
    const { manager, at } = managed();
    expect(await manager.getLease("actor-1")).toBeNull();
    await manager.acquire("n1", "actor-1");
    await at(6_000);
    expect(await manager.getLease("actor-1")).toMatchObject({
      holder: "n1",
      expiry: 6_000,
      phase: "expired",
    });
  });

  it("get_leases_for_node: the live leases of one node in one namespace", async () => {
    const { manager, at } = managed();
    await manager.acquire("n1", "old");
    await at(5_000);
    await manager.acquire("n1", "b");
    await manager.acquire("n1", "a");
    await manager.acquire("n2", "c");
    await manager.acquire("n1", { namespace: "other", id: "d" });
    await at(6_000);
    expect((await manager.getLeasesForNode("n1")).map(({ actorId }) => actorId)).toEqual(["a", "b"]);
    expect((await manager.getLeasesForNode("n1", "other")).map(({ actorId }) => actorId)).toEqual(["d"]);
  });

  it("namespaces with the same id do not conflict", async () => {
    const { manager } = managed();
    await manager.acquire("n1", { namespace: "one", id: "actor" });
    expect(await manager.acquire("n2", { namespace: "two", id: "actor" })).toMatchObject({ holder: "n2" });
  });

  it("LeaseValidityBounds: the duration is 1000 to 300000, 30000 when nothing is said", async () => {
    const env = new ManualEnv({ wallMs: 1_000 });
    expect((await new MemoryLeaseManager({ env }).acquire("n1", "a")).expiry).toBe(31_000);
    for (const leaseDurationMs of [1_000, 300_000]) {
      const lease = await new MemoryLeaseManager({ env, leaseDurationMs }).acquire("n1", "a");
      expect(lease.expiry).toBe(1_000 + leaseDurationMs);
    }
    for (const leaseDurationMs of [999, 300_001, 0]) {
      expect(() => new MemoryLeaseManager({ leaseDurationMs })).toThrow(/defaultTtlMs/);
    }
  });

  it("GracePeriodRespected: Active at 4999, Grace at 5000 and 5999, Expired at 6000; in grace only the holder acts", async () => {
    const { manager, at } = managed({ graceMs: 1_000 });
    await manager.acquire("n1", "actor-1");
    const phases: unknown[] = [];
    for (const ms of [4_999, 5_000, 5_999]) {
      await at(ms);
      phases.push((await manager.getLease("actor-1"))?.phase);
      expect(await kindOf(manager.acquire("n2", "actor-1"))).toBe("LeaseHeldByOther");
    }
    await at(6_000);
    phases.push((await manager.getLease("actor-1"))?.phase);
    expect(phases).toEqual(["active", "grace", "grace", "expired"]);
  });

  it("LeaseUniqueness: of many nodes that acquire at once one wins, and the others learn who", async () => {
    const { manager } = managed();
    const nodes = Array.from({ length: 16 }, (_, index) => `n${index}`);
    const settled = await Promise.allSettled(nodes.map((node) => manager.acquire(node, "actor-1")));
    const winners = settled.filter(({ status }) => status === "fulfilled");
    expect(winners).toHaveLength(1);
    const holder = (await manager.getLease("actor-1"))?.holder;
    for (const result of settled) {
      if (result.status === "rejected")
        expect(result.reason).toMatchObject({ kind: "LeaseHeldByOther", holder });
    }
  });

  it("takes its time from the clock that it is given", async () => {
    const { manager, env } = managed();
    await manager.acquire("n1", "actor-1");
    await env.advance(5_000);
    expect(await manager.isValid("n1", "actor-1")).toBe(false);
  });
});
