/** Layers that meet: a limit and the next waiter, a count and a gap in the events, a full audit and a hand-over. */
import { describe, expect, it } from "vitest";
import { type AuditEvent, MemoryAuditTrail } from "../../src/audit/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { MemoryExecutor, StoreExecutor } from "../../src/executor/index.ts";
import { LeaseService } from "../../src/layers/index.ts";
import { MemoryStore, StoreError } from "../../src/store/index.ts";
import { FaultyStore } from "../executor/faulty-store.ts";
import { applied, refused, runUntilSettled, unsettled } from "../executor/helpers.ts";

const KEY = { tenant: "default", name: "job" };
const NEXT = { op: "acquire", key: KEY, holder: "next", ttlMs: 5_000, token: "token-of-next" } as const;

function limitedWorld(maxLiveLeases: number) {
  const env = new ManualEnv();
  const executor = new MemoryExecutor({ env });
  const audit = new MemoryAuditTrail({ capacity: 1_000 });
  const service = new LeaseService({ executor, audit, env, maxLiveLeases });
  const acquire = (name: string, holder: string) =>
    service.execute({ op: "acquire", key: { ...KEY, name }, holder, ttlMs: 5_000 });
  return { env, executor, audit, service, acquire };
}

describe("a tenant at its limit", () => {
  it("may hand its last lease to the next waiter: one ends and one begins", async () => {
    const { service, acquire } = limitedWorld(1);
    const { token } = applied(await acquire("job", "first"));
    const release = { op: "release", key: KEY, holder: "first", token } as const;
    const released = applied(await service.execute({ ...release, next: { request: NEXT, context: {} } }));
    expect(released.next?.kind).toBe("applied");
    expect(await service.activeCount("default")).toBe(1);
    expect(refused(await acquire("other", "x")).decision.reason).toBe("CAPACITY_EXCEEDED");
    applied(await service.execute({ ...NEXT, op: "release" }));
    applied(await acquire("other", "x"));
  });

  it("may extend what it has, by the token of the lease", async () => {
    const { service, acquire } = limitedWorld(1);
    applied(await service.execute(NEXT));
    applied(await service.execute(NEXT));
    expect(refused(await acquire("other", "x")).decision.reason).toBe("CAPACITY_EXCEEDED");
  });

  it("beyond which a release finds it frees its key, and serves no waiter", async () => {
    const { executor, env } = limitedWorld(1);
    // Two leases from before the limit; the one to be released expires on this service's count.
    const key = { ...KEY, name: "held" };
    applied(await executor.execute({ op: "acquire", key, holder: "x", ttlMs: 60_000 }));
    const { token } = applied(await executor.execute({ op: "acquire", key: KEY, holder: "first", ttlMs: 1 }));
    await env.advance(10);
    const audit = new MemoryAuditTrail({ capacity: 100 });
    const service = new LeaseService({ executor, audit, env, maxLiveLeases: 1 });
    expect(await service.activeCount("default")).toBe(1);
    const release = { op: "release", key: KEY, holder: "first", token } as const;
    const released = applied(await service.execute({ ...release, next: { request: NEXT, context: {} } }));
    expect(released.next).toBeUndefined();
    expect(await service.read(KEY)).toMatchObject({ state: "released" });
  });

  it("is not waited for by a release, which serves nobody before the leases are counted", async () => {
    const { executor, env } = limitedWorld(1);
    const first = { key: KEY, holder: "first", ttlMs: 5_000 };
    const { token } = applied(await executor.execute({ op: "acquire", ...first }));
    Object.assign(executor.store, { list: () => new Promise(() => undefined) });
    const audit = new MemoryAuditTrail({ capacity: 100 });
    const service = new LeaseService({ executor, audit, env, maxLiveLeases: 1 });
    const release = { op: "release", key: KEY, holder: "first", token } as const;
    const released = applied(await service.execute({ ...release, next: { request: NEXT, context: {} } }));
    expect(released.next).toBeUndefined();
    expect(await service.read(KEY)).toMatchObject({ state: "released" });
  });

  it("does not count a grant that failed for ever", async () => {
    const env = new ManualEnv();
    const store = new FaultyStore(new MemoryStore({ env }));
    const executor = new StoreExecutor({ store, env });
    const audit = new MemoryAuditTrail({ capacity: 100 });
    const service = new LeaseService({ executor, audit, env, maxLiveLeases: 1 });
    const request = { op: "acquire", holder: "x", ttlMs: 5_000 } as const;
    store.writeFaults = ["failed-before"];
    unsettled(await service.execute({ ...request, key: { ...KEY, name: "other" } }));
    applied(await service.execute({ ...request, key: KEY }));
  });

  it("is counted again after the store's events had a gap", async () => {
    const { executor, env } = limitedWorld(1);
    const listeners: ((event: { kind: "reset" }) => void)[] = [];
    executor.watch = async (_scope, listener) => {
      listeners.push(listener);
      return { close: async () => undefined };
    };
    const audit = new MemoryAuditTrail({ capacity: 100 });
    const service = new LeaseService({ executor, audit, env, maxLiveLeases: 1 });
    expect(await service.activeCount("default")).toBe(0);
    // Another server grants one, and the event gets lost.
    applied(await executor.execute({ op: "acquire", key: KEY, holder: "theirs", ttlMs: 5_000 }));
    for (const listener of listeners) listener({ kind: "reset" });
    const other = { ...NEXT, key: { ...KEY, name: "other" } };
    expect(refused(await service.execute(other)).decision.reason).toBe("CAPACITY_EXCEEDED");
  });

  it("counts a lease that a release served until its own end, also where the store announces nothing", async () => {
    const { executor, env } = limitedWorld(1);
    executor.watch = async () => null;
    const audit = new MemoryAuditTrail({ capacity: 100 });
    const service = new LeaseService({ executor, audit, env, maxLiveLeases: 1 });
    const { token } = applied(await service.execute({ ...NEXT, holder: "first", token: "token-of-first" }));
    const request = { ...NEXT, ttlMs: 60_000 };
    const release = { op: "release", key: KEY, holder: "first", token } as const;
    applied(await service.execute({ ...release, next: { request, context: {} } }));
    await env.advance(10_000);
    expect(await service.activeCount("default")).toBe(1);
    expect((await audit.query()).filter(({ action }) => action === "expire")).toEqual([]);
  });

  it("follows the store's events again after they could not be had at first", async () => {
    const { executor, env } = limitedWorld(1);
    const watch = executor.watch.bind(executor);
    executor.watch = async () => {
      throw new StoreError("unreachable", "down", { outcome: "not-applied" });
    };
    const audit = new MemoryAuditTrail({ capacity: 100 });
    const service = new LeaseService({ executor, audit, env });
    await service.activeCount("default");
    executor.watch = watch;
    await service.activeCount("another tenant's first use");
    applied(await executor.execute({ op: "acquire", key: KEY, holder: "theirs", ttlMs: 5_000 }));
    await env.advance(1);
    expect(await service.activeCount("default")).toBe(1);
  });

  it("is counted again when the store did not answer the first count", async () => {
    const { executor, env } = limitedWorld(1);
    applied(await executor.execute({ op: "acquire", key: KEY, holder: "theirs", ttlMs: 5_000 }));
    const { list } = executor.store;
    Object.assign(executor.store, {
      list: async () => {
        throw new StoreError("unreachable", "down", { outcome: "not-applied" });
      },
    });
    const audit = new MemoryAuditTrail({ capacity: 100 });
    const service = new LeaseService({ executor, audit, env, maxLiveLeases: 1 });
    await service.activeCount("default");
    Object.assign(executor.store, { list });
    expect(await service.activeCount("default")).toBe(1);
  });
});

/** A trail that has no room for the entries of this action. */
class PartlyFullTrail extends MemoryAuditTrail {
  fullFor = "";

  override append(event: AuditEvent): void {
    if (event.action === this.fullFor) throw new Error("no space left");
    super.append(event);
  }
}

describe("a hand-over", () => {
  async function world() {
    const env = new ManualEnv();
    const store = new FaultyStore(new MemoryStore({ env }));
    const audit = new PartlyFullTrail({ capacity: 100 });
    const service = new LeaseService({ executor: new StoreExecutor({ store, env }), audit, env });
    const first = { key: KEY, holder: "first", ttlMs: 5_000 };
    const { token } = applied(await service.execute({ op: "acquire", ...first }));
    const release = { op: "release", key: KEY, holder: "first", token } as const;
    const next = { request: NEXT, context: { traceId: "trace-of-next" } };
    return { env, store, audit, service, handOver: { ...release, next } };
  }

  it("whose grant could not be audited confirms the release alone: the waiter's grant is unknown", async () => {
    const { audit, service, handOver } = await world();
    audit.fullFor = "grant";
    const outcome = applied(await service.execute(handOver));
    expect(outcome.next).toMatchObject({ kind: "unsettled", outcome: "unknown", cause: { kind: "full" } });
  });

  it("whose release could not be audited confirms the grant alone", async () => {
    const { audit, service, handOver } = await world();
    audit.fullFor = "release";
    const outcome = unsettled(await service.execute(handOver));
    expect(outcome).toMatchObject({ outcome: "unknown", next: { kind: "applied", token: NEXT.token } });
  });

  it("that ended as unknown is two entries: the waiter's grant may stand, too", async () => {
    const { env, store, audit, service, handOver } = await world();
    store.writeFaults = ["reply-lost"];
    store.readFaults = Array.from({ length: 1_000 }, () => "failed" as const);
    const outcome = unsettled(await runUntilSettled(env, service.execute({ ...handOver, timeoutMs: 1_000 })));
    expect(outcome.next).toMatchObject({ kind: "unsettled", outcome: "unknown" });
    const entries = (await audit.query()).slice(-2);
    expect(entries.map(({ action, outcome }) => `${action} ${outcome}`).sort()).toEqual([
      "grant unknown",
      "release unknown",
    ]);
    expect(entries.map(({ traceId }) => traceId)).toContain("trace-of-next");
  });
});
