/** The server deletes records that ended long ago by itself: one replica at a time, and without ever failing for it. */

import { type LeaseStore, MemoryStore, StoreError, StoreExecutor } from "solehold";
import { decorateStore, LeaseService, ManualEnv, MemoryAuditTrail } from "solehold/internal";
import { describe, expect, it } from "vitest";
import { ScheduledCollection } from "../src/main/scheduled-collection.ts";
import { createLog } from "../src/telemetry/log.ts";
import { Metrics } from "../src/telemetry/metrics.ts";

const HOUR_MS = 3_600_000;

function replica(env: ManualEnv, store: LeaseStore, everyMs = HOUR_MS, keyTenants: readonly string[] = []) {
  const logged: string[] = [];
  const log = createLog("info", { write: (line: string) => void logged.push(JSON.parse(line).msg) });
  const executor = new StoreExecutor({ store, env, retentionMs: HOUR_MS });
  const collected: string[] = [];
  const { collect } = executor;
  executor.collect = async (tenant) => {
    collected.push(tenant);
    return await collect.call(executor, tenant);
  };
  const service = new LeaseService({ executor, audit: new MemoryAuditTrail({ capacity: 100 }), env });
  const metrics = new Metrics();
  const collection = new ScheduledCollection({
    ...{ env, service, log, metrics, everyMs },
    tenants: () => keyTenants,
  });
  const deleted = async (): Promise<number> =>
    Number(/^solehold_collected_records_total (\d+)$/m.exec(await metrics.text())?.[1] ?? 0);
  return { executor, service, collection, collected, logged, deleted };
}

/** In steps shorter than a ttl, so that leases are renewed as they would be. */
async function hours(env: ManualEnv, count: number): Promise<void> {
  for (let step = 0; step < count * 360; step += 1) await env.advance(HOUR_MS / 360);
}

async function endedLease(service: LeaseService, tenant: string): Promise<void> {
  const key = { tenant, name: "job" };
  const outcome = await service.execute({ op: "acquire", key, holder: "h", ttlMs: 1_000 });
  if (outcome.kind !== "applied") throw new Error("not granted");
  await service.execute({ op: "release", key, holder: "h", token: outcome.token });
}

describe("collection by a server", () => {
  it("deletes what ended a retention ago, in tenants of keys and of requests, and counts it", async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    const { service, collection, collected, deleted } = replica(env, store, HOUR_MS, ["of-a-key"]);
    for (const tenant of ["default", "of-a-request"]) await endedLease(service, tenant);
    collection.start("one");
    await hours(env, 6);
    expect(new Set(collected)).toEqual(new Set(["default", "solehold", "of-a-key", "of-a-request"]));
    for (const tenant of ["default", "of-a-request"])
      expect((await store.list({ tenant, prefix: "", limit: 10 })).records).toEqual([]);
    expect(await deleted()).toBe(2);
    const passes = collected.filter((tenant) => tenant === "default").length;
    expect(passes).toBeGreaterThanOrEqual(5);
    expect(passes).toBeLessThanOrEqual(7);
    await collection.stop();
  });

  it("is done by one replica at a time, and goes on elsewhere when that one stops", async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    const [first, second] = [replica(env, store), replica(env, store)];
    first.collection.start("one");
    await env.advance(1);
    second.collection.start("two");
    await hours(env, 3);
    expect(first.collected.length).toBeGreaterThan(0);
    expect(second.collected).toEqual([]);
    await first.collection.stop();
    const before = first.collected.length;
    await hours(env, 3);
    expect(first.collected).toHaveLength(before);
    expect(second.collected.length).toBeGreaterThan(0);
    await second.collection.stop();
  });

  it("logs a failure once however often it comes, and deletes again when it is over", async () => {
    const env = new ManualEnv();
    const inner = new MemoryStore({ env });
    const state = { list: "answers" };
    const store = decorateStore(inner, {
      list: async (query) => {
        if (state.list === "answers") return await inner.list(query);
        throw new StoreError("unreachable", "no listing today", { outcome: "not-applied" });
      },
    });
    const { service, collection, logged, deleted } = replica(env, store);
    await endedLease(service, "default");
    state.list = "fails";
    collection.start("one");
    await hours(env, 4);
    expect(logged).toEqual(["ended records could not be deleted; trying again later"]);
    state.list = "answers";
    await hours(env, 4);
    expect(await deleted()).toBe(1);
    expect(logged.slice(1)).toEqual(["ended records were deleted"]);
    await collection.stop();
  });

  it("is not done on a store that cannot, which is said once", async () => {
    const env = new ManualEnv();
    const inner = new MemoryStore({ env });
    const capabilities = { ...inner.capabilities, conditionalDelete: false };
    const { collection, collected, logged } = replica(env, decorateStore(inner, { capabilities }));
    collection.start("one");
    await hours(env, 3);
    expect(collected).toEqual([]);
    expect(logged).toEqual([
      "ended records are kept for ever: the memory store cannot delete a record on condition of its version",
    ]);
    await collection.stop();
  });

  it("is off with 0", async () => {
    const env = new ManualEnv();
    const { collection, collected, logged } = replica(env, new MemoryStore({ env }), 0);
    collection.start("one");
    await hours(env, 3);
    expect([collected, logged]).toEqual([[], []]);
    await collection.stop();
  });

  it("does not hold up a server that stops in the middle of a pass", async () => {
    const env = new ManualEnv();
    const { executor, collection } = replica(env, new MemoryStore({ env }));
    const passes: string[] = [];
    executor.collect = (tenant) => {
      passes.push(tenant);
      return new Promise(() => undefined);
    };
    collection.start("one");
    await hours(env, 2);
    expect(passes).toEqual(["default"]);
    await collection.stop();
  });
});
