import { describe, expect, it } from "vitest";
import { LeaseLostError } from "../../src/client/errors.ts";
import type { Lease } from "../../src/client/lease.ts";
import { Leases } from "../../src/client/leases.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreLeaseManager } from "../../src/manager/index.ts";
import { ClockedStore } from "../manager/clocked-store.ts";
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
    const leases = new Leases({ manager: new StoreLeaseManager({ store, env }), env, holder: "me" });
    await leases.inspect("job");
    const beforeMs = env.monotonicMs();
    store.afterReading = () => env.advance(4_000);
    const lease = await leases.acquire("job", { ttl: TTL_MS, autoRenew: "no" });
    expect(env.monotonicMs()).toBe(beforeMs + 4_000);
    expect(lease.remaining()).toBe(TTL_MS - MARGIN_MS - 4_000);
  });

  it("ends a margin before the record does", async () => {
    const { env, leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS, autoRenew: "no" });
    await env.advance(TTL_MS - MARGIN_MS - 2);
    expect(lease.isHeld()).toBe(true);
    await env.advance(2);
    expect(lease.isHeld()).toBe(false);
    expect((await other("them").tryAcquire("job")).ok).toBe(false);
    await env.advance(MARGIN_MS);
    expect((await other("them").tryAcquire("job")).ok).toBe(true);
  });

  it("is read from the clocks, not from a timer: right after a pause in which nothing could fire", async () => {
    const { env, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    env.pause(2 * TTL_MS);
    expect(lease.isHeld()).toBe(false);
    expect(() => lease.assertHeld()).toThrow(LeaseLostError);
    expect(lease.lossReason).toBe("expired");
    expect(lease.signal.aborted).toBe(true);
  });

  it("ends when the machine slept, although the monotonic clock stood still", async () => {
    const { env, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS, autoRenew: "no" });
    env.suspend(TTL_MS);
    expect(() => lease.assertHeld()).toThrow(/expired/);
  });

  it("and its signal ends soon after waking up, without anybody asking", async () => {
    const { env, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: 60_000, autoRenew: "no" });
    const aborts = countAborts(lease);
    await env.advance(500);
    env.suspend(120_000);
    await env.advance(1_000);
    expect(aborts.count).toBe(1);
  });

  it("is not extended by a wall clock that is set back an hour", async () => {
    const { env, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS, autoRenew: "no" });
    env.stepWall(-3_600_000);
    await env.advance(TTL_MS - MARGIN_MS);
    expect(lease.isHeld()).toBe(false);
  });

  it("is only shortened by a wall clock that is set forward", async () => {
    const { env, leases } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS, autoRenew: "no" });
    env.stepWall(4_000);
    expect(lease.remaining()).toBe(TTL_MS - MARGIN_MS - 4_000);
    env.stepWall(3_600_000);
    expect(lease.isHeld()).toBe(false);
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

  it("aborts with the store's word at the next renewal: revoked", async () => {
    const { env, leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    await other("operator").revoke("job");
    await env.advance(TTL_MS / 2);
    expect(lease.signal.reason).toMatchObject({ reason: "revoked" });
    expect(lease.state).toBe("lost");
  });

  it("aborts as superseded when the store shows another's grant at the next renewal", async () => {
    const { env, leases, other } = clientWorld({ policy: { revoked: "claim-at-once" } });
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    await other("operator").revoke("job");
    await other("them").acquire("job", { wait: 0 });
    await env.advance(TTL_MS / 2);
    expect(lease.signal.reason).toMatchObject({ reason: "superseded" });
  });

  it("aborts on release, once, with that reason", async () => {
    const { leases } = clientWorld();
    const lease = await leases.acquire("job");
    const aborts = countAborts(lease);
    await lease.release();
    await lease.release();
    expect(aborts.count).toBe(1);
    expect(lease.signal.reason).toMatchObject({ reason: "released" });
    expect(lease.state).toBe("released");
  });
});

describe("renewal", () => {
  it("keeps the lease with the same fence for as long as it is held", async () => {
    const { env, leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    await env.advance(50 * TTL_MS);
    lease.assertHeld();
    expect(lease.fence).toBe(1n);
    expect(await other("them").inspect("job")).toMatchObject({ holder: "me", live: true, generation: 1n });
    await lease.release();
  });

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
    expect(await leases.inspect("job")).toMatchObject({ state: "released" });
    expect(env.pendingTimers).toBe(0);
  });

  it("that was applied but is answered only after release does not bring the lease back to life", async () => {
    const env = new ManualEnv();
    const store = new ClockedStore(env);
    const leases = new Leases({ manager: new StoreLeaseManager({ store, env }), env, holder: "me" });
    const lease = await leases.acquire("job", { ttl: TTL_MS, autoRenew: "no" });
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

  it("stops when the probe of the work fails, and goes on when it recovers in time", async () => {
    const { env, leases } = clientWorld();
    let alive = true;
    const lease = await leases.acquire("job", { ttl: TTL_MS, probe: () => alive });
    alive = false;
    await env.advance(TTL_MS * 0.5);
    expect(lease.state).toBe("jeopardy");
    alive = true;
    await env.advance(TTL_MS * 0.3);
    expect(lease.state).toBe("held");
    alive = false;
    await env.advance(2 * TTL_MS);
    expect(lease.state).toBe("lost");
    expect(lease.lossReason).toBe("expired");
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
    const lease = await leases.acquire("job", { ttl: TTL_MS, autoRenew: "no" });
    freeze(store);
    const silent = lease.renew();
    await env.advance(TTL_MS / 2);
    expect(await silent).toBe(false);
    await env.advance(TTL_MS);
    await expect(lease.renew()).rejects.toBeInstanceOf(LeaseLostError);
  });

  it("that nobody can prolong any more under a break keeps the lease to its end, then says revoked", async () => {
    const { env, leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    await other("operator").break("job", { period: "1s" });
    await env.advance(TTL_MS / 2);
    expect(lease.state).toBe("jeopardy");
    await env.advance(TTL_MS / 2);
    expect(lease.lossReason).toBe("revoked");
    const next = await other("them").tryAcquire("job");
    expect(next.ok).toBe(true);
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

  it("after a takeover does not touch the newer lease", async () => {
    const { env, leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS, autoRenew: "no" });
    await env.advance(TTL_MS);
    const theirs = await other("them").acquire("job", { ttl: TTL_MS });
    expect(await lease.release()).toEqual({ released: false, reason: "already-gone" });
    theirs.assertHeld();
    expect(await other("x").inspect("job")).toMatchObject({ holder: "them", live: true });
  });

  it("happens at the end of a scope", async () => {
    const { leases } = clientWorld();
    {
      await using lease = await leases.acquire("job");
      lease.assertHeld();
    }
    expect(await leases.inspect("job")).toMatchObject({ state: "released" });
  });
});

describe("passing a lease on", () => {
  it("by handoff: the old holder stops first, only the successor may follow until the deadline", async () => {
    const { env, leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    const handing = lease.handOff("heir", { withinMs: 5_000 });
    expect(lease.isHeld()).toBe(false);
    expect(await handing).toEqual({ released: true, reason: "released" });
    expect(await other("them").tryAcquire("job")).toMatchObject({
      ok: false,
      reason: "LEASE_HANDOFF_PENDING",
      holder: "heir",
    });
    const heirs = await other("heir").acquire("job", { wait: 0 });
    expect(heirs.fence).toBe(2n);
    expect(heirs.resumeFromLedgerRequired).toBe(true);
    await env.advance(1);
  });

  it("by handoff: after the deadline anybody may have it", async () => {
    const { env, leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    await lease.handOff("heir", { withinMs: 5_000 });
    await env.advance(5_000);
    expect((await other("them").tryAcquire("job")).ok).toBe(true);
  });

  it("by transfer: one process stops, the other adopts the same grant with the same fence", async () => {
    const { leases, other } = clientWorld();
    const lease = await leases.acquire("job", { ttl: TTL_MS });
    const secret = lease.transfer();
    expect(lease.isHeld()).toBe(false);
    const adopted = await other("anybody").adopt(secret);
    expect(adopted.fence).toBe(lease.fence);
    adopted.assertHeld();
    await lease.release();
    adopted.assertHeld();
    expect(await adopted.renew()).toBe(true);
  });

  it("refuses a secret that is none, with a message that helps", async () => {
    const { leases } = clientWorld();
    await expect(leases.adopt("hello")).rejects.toThrow(/lease\.transfer\(\)/);
  });
});

describe("a lease in a log", () => {
  it("shows its fence and state, and never its token", async () => {
    const { leases } = clientWorld();
    const lease = await leases.acquire("job");
    const logged = JSON.stringify({ lease });
    const { token } = JSON.parse(Buffer.from(lease.transfer(), "base64url").toString("utf8"));
    expect(token).toMatch(/^[\w-]{22}$/);
    expect(logged).toContain('"fence":"000000000000000000000000000000000000001"');
    expect(logged).not.toContain(token);
  });
});
