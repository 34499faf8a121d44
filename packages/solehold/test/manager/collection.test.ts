import { describe, expect, it } from "vitest";
import type { StoreLeaseManager } from "../../src/manager/index.ts";
import { applied, KEY, refused, world } from "./helpers.ts";

const HOUR_MS = 3_600_000;
const RETENTION = { retentionMs: HOUR_MS };

async function grantAndRelease(manager: StoreLeaseManager, name: string, times = 1): Promise<bigint> {
  const key = { tenant: "default", name };
  let generation = 0n;
  for (let turn = 0; turn < times; turn += 1) {
    const { token, decision } = applied(await manager.acquire({ key, holder: "a", ttlMs: 1_000 }));
    applied(await manager.release({ key, holder: "a", token }));
    generation = decision.lease.generation;
  }
  return generation;
}

describe("collection", () => {
  it("leaves a bounded store after many one-off keys", async () => {
    const { manager, memory, env } = world(RETENTION);
    let most = 0;
    for (let round = 0; round < 40; round += 1) {
      for (let index = 0; index < 50; index += 1)
        await grantAndRelease(manager, `round-${round}-job-${index}`);
      await env.advance(HOUR_MS / 2);
      await manager.collect("default");
      const { records } = await memory.list({ tenant: "default", prefix: "", limit: 10_000 });
      most = Math.max(most, records.length);
    }
    // 2,000 keys were used; those of at most a few retentions are left at any time.
    expect(most).toBeLessThan(500);
  });

  it("never lets a fence go back: a collected key starts above every generation it ever had", async () => {
    const { manager, another, env } = world(RETENTION);
    const last = await grantAndRelease(manager, "job", 7);
    await grantAndRelease(manager, "other", 2);
    for (let pass = 0; pass < 4; pass += 1) {
      await env.advance(HOUR_MS);
      await manager.collect("default");
    }
    expect(await manager.get(KEY)).toBeNull();
    const { decision } = applied(await another().acquire({ key: KEY, holder: "b", ttlMs: 1_000 }));
    expect(decision.lease.generation).toBeGreaterThan(last);
    // The process that did the collecting gives the same answer.
    const other = { tenant: "default", name: "other" };
    expect(
      applied(await manager.acquire({ key: other, holder: "b", ttlMs: 1_000 })).decision.lease.generation,
    ).toBe(8n);
  });

  it("deletes only under a floor that has stood for a whole retention", async () => {
    const { manager, env } = world(RETENTION);
    await grantAndRelease(manager, "job", 3);
    await env.advance(HOUR_MS);
    expect(await manager.collect("default")).toMatchObject({ deleted: 0, waiting: 1, floor: 3n });
    await env.advance(HOUR_MS - 1);
    expect(await manager.collect("default")).toMatchObject({ deleted: 0, waiting: 1, floor: 3n });
    await env.advance(1);
    expect(await manager.collect("default")).toMatchObject({ deleted: 1, waiting: 0, floor: 3n });
  });

  it("does not raise a floor that is still settling: a busy tenant would never be collected", async () => {
    const { manager, env } = world(RETENTION);
    await grantAndRelease(manager, "early", 3);
    await env.advance(HOUR_MS / 2);
    await grantAndRelease(manager, "late", 9);
    await env.advance(HOUR_MS / 2);
    expect(await manager.collect("default")).toMatchObject({ deleted: 0, floor: 3n });
    await env.advance(HOUR_MS / 2);
    expect(await manager.collect("default")).toMatchObject({ deleted: 0, waiting: 2, floor: 3n });
    await env.advance(HOUR_MS / 2);
    expect(await manager.collect("default")).toMatchObject({ deleted: 1, waiting: 1, floor: 9n });
  });

  it("leaves alone what is live, what ended lately, and what carries a term", async () => {
    const { manager, env } = world({ retentionMs: HOUR_MS, policy: { maxTtlMs: 100 * HOUR_MS } });
    const live = { tenant: "default", name: "live" };
    applied(await manager.acquire({ key: live, holder: "a", ttlMs: 50 * HOUR_MS }));
    const termed = { tenant: "default", name: "termed" };
    const { token } = applied(await manager.acquire({ key: termed, holder: "a", ttlMs: 1_000, term: 5n }));
    applied(await manager.release({ key: termed, holder: "a", token }));
    await grantAndRelease(manager, "old", 9);
    for (let pass = 0; pass < 3; pass += 1) {
      await env.advance(HOUR_MS);
      if (pass === 2) await grantAndRelease(manager, "lately");
      await manager.collect("default");
    }
    expect(await manager.get({ tenant: "default", name: "old" })).toBeNull();
    for (const name of ["live", "termed", "lately"]) {
      expect(await manager.get({ tenant: "default", name })).not.toBeNull();
    }
  });

  it("of one tenant leaves the others' records and fences alone", async () => {
    const { manager, env } = world(RETENTION);
    await grantAndRelease(manager, "job", 5);
    const foreign = { tenant: "other", name: "job" };
    for (let pass = 0; pass < 3; pass += 1) {
      await env.advance(HOUR_MS);
      await manager.collect("default");
    }
    expect(
      applied(await manager.acquire({ key: foreign, holder: "a", ttlMs: 1_000 })).decision.lease.generation,
    ).toBe(1n);
  });
});

describe("a store that lost its last writes", () => {
  it("is noticed by who saw a higher fence: the grant is refused, not handed out again", async () => {
    const { manager, memory, another } = world();
    await grantAndRelease(manager, "job", 3);
    const { records } = await memory.read([KEY]);
    const [current] = records;
    if (current?.kind !== "found") throw new Error("the record is there");
    // The store comes back with an older state of the key.
    const older = { ...current.record, generation: 1n, nonce: "older" };
    await memory.apply([{ key: KEY, expected: current.version, next: older }]);
    // And again, although by now the older state is what was seen last.
    for (let time = 0; time < 2; time += 1) {
      const { decision } = refused(await manager.acquire({ key: KEY, holder: "a", ttlMs: 1_000 }));
      expect(decision.reason).toBe("FENCE_WENT_BACK");
    }
    // Who never saw more cannot know.
    applied(await another().acquire({ key: KEY, holder: "b", ttlMs: 1_000 }));
  });

  it("is noticed by who has had to do with many other keys since", async () => {
    const { manager, memory } = world({ cacheSize: 10 });
    await grantAndRelease(manager, "job", 3);
    const { records } = await memory.read([KEY]);
    const [current] = records;
    if (current?.kind !== "found") throw new Error("the record is there");
    for (let other = 0; other < 6; other += 1) await grantAndRelease(manager, `other-${other}`);
    const older = { ...current.record, generation: 1n, nonce: "older" };
    await memory.apply([{ key: KEY, expected: current.version, next: older }]);
    expect(refused(await manager.acquire({ key: KEY, holder: "a", ttlMs: 1_000 })).decision.reason).toBe(
      "FENCE_WENT_BACK",
    );
  });

  it("is noticed when the record is gone altogether", async () => {
    const { manager, memory } = world();
    await grantAndRelease(manager, "job", 3);
    const { records } = await memory.read([KEY]);
    const [current] = records;
    if (current?.kind !== "found") throw new Error("the record is there");
    await memory.apply([{ key: KEY, expected: current.version, next: null }]);
    expect(refused(await manager.acquire({ key: KEY, holder: "a", ttlMs: 1_000 })).decision.reason).toBe(
      "FENCE_WENT_BACK",
    );
  });
});
