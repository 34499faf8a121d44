// Mistakes that the simulation found in the client, each as the shortest story that shows it.
import { describe, expect, it } from "vitest";
import { Leases } from "../../src/client/leases.ts";
import { RenewalSchedule } from "../../src/client/renewal-schedule.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { type LeaseView, StoreExecutor } from "../../src/executor/index.ts";
import { MemoryStore } from "../../src/store/index.ts";
import { KeyStatus } from "../../src/waiting/key-status.ts";
import { lookAgainMs } from "../../src/waiting/look-schedule.ts";
import { clientWorld, freeze } from "./helpers.ts";

describe("the signal", () => {
  it("aborts by the wall clock's end after a short sleep, although the timers slept too", async () => {
    const { env, leases, store } = clientWorld();
    const { signal } = await leases.acquire("job", { ttl: 30_000, wait: 0 });
    const watched = await leases.acquire("other job", { ttl: 30_000, wait: 0 });
    const states: string[] = [];
    watched.onStateChange((state) => states.push(state));
    freeze(store);
    env.suspend(20_000);
    // A second to notice, and the rest of the thirty that is left.
    await env.advance(10_000);
    expect(signal.aborted).toBe(true);
    expect(states).toContain("lost");
  });

  it("aborts by the wall clock's end, too, if it is asked for only after the sleep", async () => {
    const { env, leases, store } = clientWorld();
    const lease = await leases.acquire("job", { ttl: 30_000, wait: 0 });
    freeze(store);
    env.suspend(28_000);
    const { signal } = lease;
    expect(signal.aborted).toBe(false);
    await env.advance(2_000);
    expect(signal.aborted).toBe(true);
  });

  it("is never needed for a lease whose grant was longer on its way than it lasts: it is not handed out", async () => {
    const { env, leases, store } = clientWorld();
    await leases.inspect("job");
    const apply = store.apply.bind(store);
    store.apply = async (writes) => {
      const reply = await apply(writes);
      env.pause(2_000);
      return reply;
    };
    const acquired = leases.acquire("job", { ttl: 1_000, wait: 0, autoRenew: false });
    await expect(acquired).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE", outcome: "not-applied" });
  });
});

describe("renewal in the background", () => {
  it("does not renew a lease that ended while the machine slept", async () => {
    const { env, leases, store } = clientWorld();
    const lease = await leases.acquire("job", { ttl: 600, wait: 0 });
    const writesBefore = store.calls.writes;
    env.suspend(10_000);
    await env.advance(300);
    expect(store.calls.writes).toBe(writesBefore);
    expect(lease.signal.aborted).toBe(true);
  });

  it("keeps short delays: rounded down to nothing they would be a storm", async () => {
    const env = new ManualEnv({ monotonicMs: 1_000 });
    const schedule = new RenewalSchedule(env);
    let renewals = 0;
    const lease = {
      renewNow: () => {
        renewals += 1;
        if (renewals < 1_000) schedule.plan(lease, env.monotonicMs(), 6);
      },
    };
    schedule.plan(lease, env.monotonicMs(), 6);
    await env.advance(60);
    expect(renewals).toBeLessThanOrEqual(12);
  });
});

describe("waiting", () => {
  it("does not storm a store whose lease has ended by the clock and must still be observed", () => {
    const env = new ManualEnv();
    const pausesMs = Array.from({ length: 40 }, (_, overdueLooks) =>
      lookAgainMs(env, { ends: [{ inMs: 0, overdueLooks }], looks: overdueLooks, watched: true }),
    );
    // The first looks come soon, because the end may have been misjudged by moments.
    expect(pausesMs[0]).toBeLessThanOrEqual(11);
    const inTenSecondsMs = pausesMs.reduce((sum, each) => sum + each, 0);
    expect(inTenSecondsMs).toBeGreaterThan(10_000);
  });

  it("does not storm a store without a clock, where every look finds that a dead lease ends any moment now", () => {
    const env = new ManualEnv();
    const status = new KeyStatus(0n);
    const view = {
      holder: "dead",
      fence: 7n,
      ttlMs: 5_000,
      grantedAtMs: 0,
      expiresAtMs: 5_000,
      remainingMs: 1,
    };
    let looks = 0;
    for (let nowMs = 0; nowMs < view.ttlMs; looks += 1) {
      status.onView(view as LeaseView, nowMs);
      status.onLooked(nowMs);
      nowMs += lookAgainMs(env, { ends: status.ends(nowMs), looks: status.looks, watched: true });
    }
    expect(looks).toBeLessThan(40);
  });

  it("looks at a dead lease when it was observed for a whole ttl", () => {
    const status = new KeyStatus(0n);
    const view = {
      holder: "dead",
      fence: 7n,
      ttlMs: 5_000,
      grantedAtMs: 0,
      expiresAtMs: 5_000,
      remainingMs: 1,
    };
    status.onView(view as LeaseView, 0);
    for (const nowMs of [0, 2_000, 4_000]) status.onLooked(nowMs);
    expect(status.ends(4_000).map(({ inMs }) => inMs)).toEqual([0, 1_100]);
  });

  it("goes on when the store never answers a watch", async () => {
    const env = new ManualEnv();
    class SilentWatch extends MemoryStore {
      override watch(): Promise<never> {
        return new Promise<never>(() => undefined);
      }
    }
    const executor = new StoreExecutor({ store: new SilentWatch({ env }), env, callTimeoutMs: 1_000 });
    const first = new Leases({ executor, env, holder: "first" });
    const second = new Leases({ executor, env, holder: "second" });
    const lease = await first.acquire("job", { ttl: 5_000 });
    const waiting = second.acquire("job", { ttl: 5_000, wait: 60_000 });
    let isServed = false;
    void waiting.then(() => {
      isServed = true;
    });
    await env.advance(100);
    await lease.release();
    await env.advance(30_000);
    expect(isServed).toBe(true);
  });
});
