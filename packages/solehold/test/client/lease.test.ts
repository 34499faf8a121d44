// What a holder does while its store is late, frozen or failing: faults that only a store in this process can
// have. Everything else is in the suite that every way to leases runs.
import { describe, expect, it } from "vitest";
import { LeaseLostError } from "../../src/client/errors.ts";
import type { Lease } from "../../src/client/lease.ts";
import { Leases } from "../../src/client/leases.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { ClockedStore } from "../executor/clocked-store.ts";
import { clientWorld, freeze, thaw } from "./helpers.ts";

const TTL_MS = 10_000;
/** 1 % of the ttl and 2 ms. */
const MARGIN_MS = 102;

function countAborts(lease: Lease): { readonly count: number } {
  const seen = { count: 0 };
  lease.signal.addEventListener("abort", () => {
    seen.count += 1;
  });
  return seen;
}

describe("what a holder believes", () => {
  it("counts from before the request was sent, however late the reply", async () => {
    const env = new ManualEnv();
    const store = new ClockedStore(env);
    const leases = new Leases({ executor: new StoreExecutor({ store, env }), env, holder: "me" });
    await leases.inspect("job");
    const beforeMs = env.monotonicMs();
    store.afterReading = () => env.advance(4_000);
    const lease = await leases.acquire("job", { ttl: TTL_MS, autoRenew: false });
    expect(env.monotonicMs()).toBe(beforeMs + 4_000);
    expect(lease.remaining()).toBe(TTL_MS - MARGIN_MS - 4_000);
  });
});

describe("the signal", () => {
  it("aborts once, before the lease ends, when the store freezes for ever, and says why", async () => {
    const { env, store, leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    const aborts = countAborts(lease);
    await env.advance(50);
    freeze(store);
    await env.advance(TTL_MS - 50 - MARGIN_MS);
    expect(aborts.count).toBe(1);
    expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(lease.signal.reason).toMatchObject({ reason: "unreachable", fence: 1n, code: "LEASE_LOST" });
    expect((await other("them").tryAcquire("job")).ok).toBe(false);
    await env.advance(10 * TTL_MS);
    expect(aborts.count).toBe(1);
  });

  it("aborts in time when the grant's answer came so late that it ends before its first renewal", async () => {
    const env = new ManualEnv();
    const store = new ClockedStore(env);
    const leases = new Leases({ executor: new StoreExecutor({ store, env }), env, holder: "me" });
    await leases.inspect("job");
    store.afterReading = () => env.advance(4_000);
    const lease = await leases.acquire("job", { ttl: TTL_MS / 2 });
    store.afterReading = async () => undefined;
    const aborts = countAborts(lease);
    expect(lease.isHeld()).toBe(true);
    await env.advance(TTL_MS / 2 - 4_000 - MARGIN_MS / 2);
    expect(aborts.count).toBe(1);
  });

  it("aborts in time when a renewal is never answered and never given up on", async () => {
    const { env, leases } = clientWorld();
    const execute = leases.executor.execute.bind(leases.executor);
    leases.executor.execute = (request, context) =>
      request.op === "renew" ? new Promise(() => undefined) : execute(request, context);
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    const aborts = countAborts(lease);
    await env.advance(TTL_MS - MARGIN_MS);
    expect(aborts.count).toBe(1);
  });

  it("is aborted already when it is asked for after the end", async () => {
    const { env, store, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    freeze(store);
    await env.advance(TTL_MS);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "unreachable" });
  });

  it("aborts as superseded when the store shows another's grant at the next renewal", async () => {
    const { env, leases, other } = clientWorld({ policy: { revoked: "claim-at-once" } });
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    await other("operator").revoke("job");
    await other("them").acquire("job", { wait: 0 });
    await env.advance(TTL_MS / 2);
    expect(lease.signal.reason).toMatchObject({ reason: "superseded" });
  });
});

describe("renewal", () => {
  it("survives a blip shorter than what is left, passing through jeopardy", async () => {
    const { env, store, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    const states: string[] = [];
    lease.onStateChange((state) => states.push(state));
    freeze(store);
    await env.advance(TTL_MS * 0.6);
    expect(lease.state).toBe("jeopardy");
    thaw(store);
    await env.advance(TTL_MS);
    expect(lease.state).toBe("held");
    expect(states).toEqual(["jeopardy", "held"]);
    await lease.release();
  });

  it("of all leases of a process travels in one store call", async () => {
    const { env, store, leases } = clientWorld();
    const names = Array.from({ length: 200 }, (_, index) => `job-${index}`);
    const held = await Promise.all(names.map((name) => leases.acquire(name, { ttl: 60_000 })));
    const before = { ...store.calls };
    await env.advance(30_000);
    const calls = store.calls.apply - before.apply;
    const writes = store.calls.writes - before.writes;
    expect(writes).toBeGreaterThanOrEqual(200);
    // Jitter spreads them over 40 % of 20 s; within that they share calls.
    expect(writes / calls).toBeGreaterThan(1);
    for (const lease of held) lease.assertHeld();
    await Promise.all(held.map((lease) => lease.release()));
  });

  it("stops with release, even if a renewal was under way and resolves later", async () => {
    const { env, store, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    store.writeFaults = ["delayed"];
    store.readFaults = ["frozen"];
    await env.advance(TTL_MS * 0.45);
    const released = lease.release();
    await env.advance(5_000);
    expect(await released).toEqual({ released: true, reason: "released" });
    expect((await store.deliverLate())[0]?.results).toMatchObject([{ kind: "conflict" }]);
    const writes = store.calls.writes;
    await env.advance(10 * TTL_MS);
    expect(store.calls.writes).toBe(writes);
    expect(env.pendingTimers).toBe(0);
    expect(await leases.inspect("job")).toMatchObject({ state: "released" });
  });

  it("that was applied but is answered only after release does not bring the lease back to life", async () => {
    const env = new ManualEnv();
    const store = new ClockedStore(env);
    const leases = new Leases({ executor: new StoreExecutor({ store, env }), env, holder: "me" });
    const lease = await leases.acquire("job", { ttl: TTL_MS, autoRenew: false });
    let answer: () => void = () => undefined;
    store.afterReading = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const renewing = lease.renew().catch((error: unknown) => error);
    await env.advance(1);
    store.afterReading = async () => undefined;
    const releasing = lease.release();
    answer();
    expect(await renewing).toBeInstanceOf(LeaseLostError);
    expect(lease.isHeld()).toBe(false);
    expect(lease.state).toBe("released");
    expect(await releasing).toEqual({ released: true, reason: "released" });
    expect(await leases.inspect("job")).toMatchObject({ state: "released" });
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("broken");
      },
    ],
    ["rejects", () => Promise.reject(new Error("broken"))],
    ["never answers", () => new Promise<boolean>(() => undefined)],
  ])("stops when the probe %s", async (_how, probe) => {
    const { env, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS, probe });
    await env.advance(2 * TTL_MS);
    expect(lease.state).toBe("lost");
  });

  it("by hand throws once the lease is over, and says false when the store is silent", async () => {
    const { env, store, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS, autoRenew: false });
    freeze(store);
    const silent = lease.renew();
    await env.advance(TTL_MS / 2);
    expect(await silent).toBe(false);
    await env.advance(TTL_MS);
    await expect(lease.renew()).rejects.toBeInstanceOf(LeaseLostError);
  });
});

describe("release", () => {
  it("never throws, is bounded, and says so when the store is silent", async () => {
    const { env, store, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    freeze(store);
    const released = lease.release();
    await env.advance(6_000);
    expect(await released).toEqual({ released: false, reason: "unreachable" });
  });
});
