import { describe, expect, it } from "vitest";
import { connect, openStore } from "../../src/client/connect.ts";
import {
  LeaseDeniedError,
  LeaseHeldError,
  LeaseRefusedError,
  LeaseTimeoutError,
  LeaseUnavailableError,
  StaleFenceError,
} from "../../src/client/errors.ts";
import { FencedResource } from "../../src/client/fenced-resource.ts";
import type { Lease } from "../../src/client/lease.ts";
import { Leases } from "../../src/client/leases.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreLeaseManager } from "../../src/manager/index.ts";
import { ClockedStore } from "../manager/clocked-store.ts";
import { runUntilSettled } from "../manager/helpers.ts";
import { clientWorld, freeze, thaw } from "./helpers.ts";

describe("tryAcquire", () => {
  it("tells who holds it and for how long as a value, not as an error", async () => {
    const { env, leases, other } = clientWorld();
    await leases.acquire("job", { ttl: "10s" });
    await env.advance(1_000);
    expect(await other("them").tryAcquire("job")).toMatchObject({
      ok: false,
      reason: "LEASE_HELD_BY_OTHER",
      holder: "me",
      retryAfterMs: 9_000,
    });
  });

  it("throws when the store is broken: that is not the same as being held", async () => {
    const { store, leases } = clientWorld();
    await leases.inspect("job");
    store.writeFaults = ["failed-before"];
    const failure = leases.tryAcquire("job");
    await expect(failure).rejects.toBeInstanceOf(LeaseUnavailableError);
    await expect(failure).rejects.toMatchObject({
      code: "LEASE_UNAVAILABLE",
      retryable: true,
      outcome: "not-applied",
    });
  });

  it("gives something to dispose of either way", async () => {
    const { leases, other } = clientWorld();
    {
      await using attempt = await leases.tryAcquire("job");
      expect(attempt.ok).toBe(true);
      await using second = await other("them").tryAcquire("job");
      expect(second.ok).toBe(false);
    }
    expect((await other("them").tryAcquire("job")).ok).toBe(true);
  });

  it.each([0, -1, Number.NaN, 1.5, Number.POSITIVE_INFINITY, "soon", "1y", "-5s", 2 ** 53, null])(
    "refuses a ttl of %s, naming the field",
    async (ttl) => {
      const { leases } = clientWorld();
      await expect(leases.tryAcquire("job", { ttl: ttl as number })).rejects.toThrow(/^ttl must be/);
    },
  );

  it("refuses a ttl beyond the policy, and one too short for its own safety margin", async () => {
    const { leases } = clientWorld();
    await expect(leases.tryAcquire("job", { ttl: "2h" })).rejects.toBeInstanceOf(LeaseRefusedError);
    await expect(leases.tryAcquire("job", { ttl: 2 })).rejects.toThrow(/longer ttl/);
  });

  it.each(["", " job", "a\u0000b", "a\nb", "$floor", "\ud800", "a\u200bb", "x".repeat(257)])(
    "refuses the name %j, saying what a name looks like",
    async (name) => {
      const { leases } = clientWorld();
      await expect(leases.tryAcquire(name)).rejects.toThrow(/the lease name must/);
    },
  );
});

describe("acquire", () => {
  it("with no wait fails at once with the holder", async () => {
    const { leases, other } = clientWorld();
    await leases.acquire("job");
    await expect(other("them").acquire("job", { wait: 0 })).rejects.toMatchObject({
      name: "LeaseHeldError",
      code: "LEASE_HELD",
      holder: "me",
    });
  });

  it("gives up after its wait with an error that is also a LeaseHeldError", async () => {
    const { env, leases, other } = clientWorld();
    await leases.acquire("job", { ttl: "60s" });
    const waiting = other("them").acquire("job", { wait: "5s" });
    const failure = runUntilSettled(env, waiting);
    await expect(failure).rejects.toBeInstanceOf(LeaseTimeoutError);
    await expect(failure).rejects.toBeInstanceOf(LeaseHeldError);
  });

  it("gets the lease when it is released, by news, without having looked in between", async () => {
    const { env, store, leases, other } = clientWorld({ holder: "waiter" });
    const holder = other("holder");
    const lease = await holder.acquire("job", { ttl: "60s", autoRenew: "no" });
    const waiting = leases.acquire("job", { wait: "30s" });
    await env.advance(500);
    const before = { ...store.calls };
    await lease.release();
    const got = await waiting;
    expect(got.fence).toBe(2n);
    expect(store.calls.apply - before.apply).toBeLessThanOrEqual(2);
    expect(store.calls.read - before.read).toBeLessThanOrEqual(2);
  });

  it("looks at most now and then while it waits, however many wait", async () => {
    const { env, store, leases, other } = clientWorld({ holder: "waiter" });
    await other("holder").acquire("job", { ttl: "10m", autoRenew: "no" });
    const waiting = Array.from({ length: 20 }, () => leases.acquire("job", { wait: "2m" }).catch(() => null));
    await env.advance(1_000);
    const before = store.calls.read + store.calls.apply;
    await env.advance(60_000);
    const commandsPerSecond = (store.calls.read + store.calls.apply - before) / 60;
    expect(commandsPerSecond).toBeLessThan(2);
    await runUntilSettled(env, Promise.all(waiting), 200_000);
  });

  it("takes over right after the end of a lease whose holder died", async () => {
    const { env, leases, other } = clientWorld();
    await other("dead").acquire("job", { ttl: "5s", autoRenew: "no" });
    const waiting = leases.acquire("job", { wait: "30s" });
    await env.advance(5_100);
    const lease = await waiting;
    expect(lease.resumeFromLedgerRequired).toBe(true);
  });

  it("serves waiters of this process in the order in which they came", async () => {
    const { env, leases, other } = clientWorld();
    const first = await other("holder").acquire("job", { ttl: "60s" });
    const order: number[] = [];
    const waiting = [0, 1, 2, 3, 4].map(async (index) => {
      const lease = await leases.acquire("job", { wait: "60s" });
      order.push(index);
      await lease.release();
    });
    await env.advance(100);
    await first.release();
    await runUntilSettled(env, Promise.all(waiting));
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it("does not let a newcomer pass those who already wait", async () => {
    const { env, leases, other } = clientWorld();
    const holder = await other("holder").acquire("job", { ttl: "60s" });
    const order: string[] = [];
    const waiter = async (name: string): Promise<void> => {
      const lease = await leases.acquire("job", { wait: "60s" });
      order.push(name);
      await lease.release();
    };
    const first = waiter("first");
    await env.advance(100);
    const releasing = holder.release();
    const newcomer = waiter("newcomer");
    await runUntilSettled(env, Promise.all([first, newcomer, releasing]));
    expect(order).toEqual(["first", "newcomer"]);
  });

  it("serves all waiters, in order, over a store that brings no news", async () => {
    const env = new ManualEnv();
    const leases = new Leases({
      manager: new StoreLeaseManager({ store: new ClockedStore(env), env }),
      env,
      holder: "me",
    });
    const holder = await leases.acquire("job", { ttl: "60s" });
    const order: number[] = [];
    const controller = new AbortController();
    const waiting = [0, 1, 2].map(async (index) => {
      const options = index === 0 ? { signal: controller.signal } : {};
      const lease = await leases.acquire("job", { wait: "30s", ...options });
      order.push(index);
      await lease.release();
    });
    await env.advance(100);
    controller.abort(new Error("left"));
    const settled = Promise.allSettled(waiting);
    await env.advance(100);
    await holder.release();
    await env.advance(3_000);
    expect(order).toEqual([1, 2]);
    await runUntilSettled(env, settled);
  });

  it.each(["head", "middle", "tail"])("is not held up by a %s waiter that gave up", async (which) => {
    const { env, leases, other } = clientWorld();
    const holder = await other("holder").acquire("job", { ttl: "60s" });
    const gaveUp = { head: 0, middle: 1, tail: 2 }[which];
    const controller = new AbortController();
    const served: number[] = [];
    const waiting = [0, 1, 2].map(async (index) => {
      const signal = index === gaveUp ? controller.signal : new AbortController().signal;
      const lease = await leases.acquire("job", { wait: "60s", signal });
      served.push(index);
      await lease.release();
    });
    await env.advance(100);
    controller.abort(new Error("changed my mind"));
    const settled = Promise.allSettled(waiting);
    await env.advance(100);
    await holder.release();
    const results = await runUntilSettled(env, settled);
    expect(results[gaveUp ?? 0]).toMatchObject({
      status: "rejected",
      reason: { message: "changed my mind" },
    });
    expect(served).toEqual([0, 1, 2].filter((index) => index !== gaveUp));
  });

  it("that was aborted just when it was granted gives the grant back", async () => {
    const { leases, other } = clientWorld();
    const controller = new AbortController();
    const acquiring = leases.acquire("job", { wait: "10s", signal: controller.signal });
    controller.abort(new Error("too late"));
    await expect(acquiring).rejects.toThrow("too late");
    expect((await other("them").tryAcquire("job")).ok).toBe(true);
  });

  it("goes on trying while the store is away, within its wait", async () => {
    const { env, store, leases } = clientWorld();
    await leases.inspect("job");
    store.writeFaults = Array.from({ length: 10 }, () => "failed-before" as const);
    const lease = await runUntilSettled(env, leases.acquire("job", { wait: "30s" }));
    lease.assertHeld();
  });

  it("whose reply was lost ends with that grant, not locked out", async () => {
    const { env, store, leases } = clientWorld();
    await leases.inspect("job");
    store.writeFaults = ["reply-lost"];
    store.readFaults = Array.from({ length: 5 }, () => "failed" as const);
    const lease = await runUntilSettled(env, leases.acquire("job", { wait: "30s", ttl: "60s" }));
    expect(lease.fence).toBe(1n);
  });

  it("repeated with its idempotency key after a restart finds the same grant, and believes from a renewal on", async () => {
    const { env, leases, other } = clientWorld();
    const options = { ttl: "60s", idempotencyKey: "order-7", autoRenew: "no" } as const;
    const first = await leases.acquire("job", options);
    await env.advance(50_000);
    const again = await other("me").acquire("job", options);
    expect(again.fence).toBe(first.fence);
    expect(again.remaining()).toBe(60_000 - 602);
    expect(await leases.inspect("job")).toMatchObject({ renewals: 1, generation: 1n });
  });

  it("of a key that this process already holds waits for itself instead of believing twice", async () => {
    const { env, leases } = clientWorld();
    const first = await leases.acquire("job");
    const second = leases.acquire("job", { wait: "60s" });
    await env.advance(1_000);
    first.assertHeld();
    await first.release();
    expect((await runUntilSettled(env, second)).fence).toBe(2n);
  });
});

describe("run", () => {
  it("returns the work's result and releases after it", async () => {
    const { leases } = clientWorld();
    let during: string | undefined;
    const result = await leases.run("job", { ttl: "10s" }, async (lease) => {
      during = (await leases.inspect("job"))?.state;
      return lease.fence;
    });
    expect([result, during]).toEqual([1n, "held"]);
    expect(await leases.inspect("job")).toMatchObject({ state: "released" });
  });

  it("passes on the work's error, even when the release fails too", async () => {
    const { env, store, leases } = clientWorld();
    const running = leases.run("job", { ttl: "10s" }, () => {
      freeze(store);
      throw new Error("the work failed");
    });
    await expect(runUntilSettled(env, running)).rejects.toThrow("the work failed");
  });

  it("waits for work that ignores the abort, and returns its result", async () => {
    const { env, store, leases } = clientWorld();
    let finish: (value: string) => void = () => undefined;
    let lease: Lease | undefined;
    const running = leases.run("job", { ttl: "10s" }, (held) => {
      lease = held;
      return new Promise<string>((resolve) => {
        finish = resolve;
      });
    });
    await env.advance(100);
    freeze(store);
    await env.advance(20_000);
    expect(lease?.signal.aborted).toBe(true);
    thaw(store);
    finish("done anyway");
    expect(await runUntilSettled(env, running)).toBe("done anyway");
  });

  it("has only one at work, ever", async () => {
    const { env, leases, other } = clientWorld();
    let atWork = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      atWork += 1;
      most = Math.max(most, atWork);
      await env.advance(0);
      atWork -= 1;
    };
    const runs = ["a", "b", "c", "d"].map((holder) => other(holder).run("job", { wait: "5m" }, work));
    await runUntilSettled(env, Promise.all([...runs, leases.run("job", { wait: "5m" }, work)]));
    expect(most).toBe(1);
  });
});

describe("elect", () => {
  it("yields term after term with growing fences, and stops with its signal", async () => {
    const { env, leases } = clientWorld();
    const controller = new AbortController();
    const fences: bigint[] = [];
    const campaign = (async () => {
      for await (const term of leases.elect("scheduler", { ttl: "10s", signal: controller.signal })) {
        fences.push(term.fence);
        if (fences.length === 3) controller.abort();
      }
    })();
    await runUntilSettled(env, campaign);
    expect(fences).toEqual([1n, 2n, 3n]);
  });

  it("stands again after a term was lost", async () => {
    const { env, leases, other } = clientWorld();
    const fences: bigint[] = [];
    const campaign = (async () => {
      for await (const term of leases.elect("scheduler", { ttl: "10s" })) {
        fences.push(term.fence);
        if (fences.length === 2) break;
        await new Promise((resolve) => term.signal.addEventListener("abort", resolve, { once: true }));
      }
    })();
    await env.advance(100);
    await other("operator").revoke("scheduler");
    await runUntilSettled(env, campaign);
    expect(fences).toEqual([1n, 2n]);
  });
});

describe("operators", () => {
  it("revoking what is not there is denied, not ignored", async () => {
    const { leases } = clientWorld();
    await expect(leases.revoke("nothing")).rejects.toBeInstanceOf(LeaseDeniedError);
  });

  it("revoking a grant by its fence leaves a newer one alone", async () => {
    const { leases, other } = clientWorld();
    const first = await leases.acquire("job");
    await first.release();
    const second = await other("them").acquire("job");
    await expect(leases.revoke("job", { fence: first.fence })).rejects.toMatchObject({
      reason: "LEASE_GENERATION_STALE",
    });
    expect(await second.renew()).toBe(true);
  });

  it("list page by page, by prefix and by holder", async () => {
    const { leases, other } = clientWorld();
    for (let index = 0; index < 7; index += 1) await leases.acquire(`a/${index}`);
    await other("them").acquire("a/them");
    await leases.acquire("b");
    const names = async (filter: { prefix?: string; holder?: string }): Promise<string[]> => {
      const found: string[] = [];
      for await (const lease of leases.list(filter)) found.push(lease.key.name);
      return found;
    };
    expect(await names({ prefix: "a/", holder: "them" })).toEqual(["a/them"]);
    expect(await names({ prefix: "a/" })).toHaveLength(8);
    expect(await names({})).toHaveLength(9);
  });
});

describe("FencedResource", () => {
  const by = (fence: bigint) => ({ key: { tenant: "default", name: "job" }, fence });

  it("refuses every write of a zombie once a newer fence was seen, and changes nothing", () => {
    const counter = new FencedResource(0);
    counter.write(by(1n), (value) => value + 1);
    counter.write(by(1n), (value) => value + 1);
    counter.write(by(2n), (value) => value + 10);
    for (let attempt = 0; attempt < 100; attempt += 1) {
      expect(() => counter.write(by(1n), () => 0)).toThrow(StaleFenceError);
    }
    expect(counter.state).toBe(12);
    expect(counter.newestFence).toBe(2n);
  });

  it("keeps its state when a change throws", () => {
    const resource = new FencedResource("before");
    expect(() =>
      resource.write(by(3n), () => {
        throw new Error("no");
      }),
    ).toThrow("no");
    expect(resource.state).toBe("before");
    expect(() => resource.write(by(2n), () => "older")).toThrow(StaleFenceError);
  });
});

describe("connect", () => {
  it("opens memory: with a holder name that tells host and process", async () => {
    const leases = await connect("memory:");
    expect(leases.holder).toContain(`:${process.pid}:`);
    await leases.run("job", {}, (lease) => lease.assertHeld());
    await leases.close();
  });

  it("lists the known schemes when it meets another", async () => {
    await expect(connect("zookeeper://host")).rejects.toThrow(
      /unknown scheme 'zookeeper:'.*memory:.*embedded:/,
    );
    await expect(openStore("data")).rejects.toThrow(/no scheme.*embedded:\.\/data/);
  });

  it("refuses a tenant that could be mistaken for a path", async () => {
    await expect(connect("memory:", { tenant: "../other" })).rejects.toThrow(/^tenant must/);
  });
});
