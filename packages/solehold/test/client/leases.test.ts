// What Leases do while their store fails or announces nothing. It needs faults between executor and store, which
// only a store in this process can have; everything else is in the suite that every way to leases runs.
import { describe, expect, it } from "vitest";
import { connect, openStore } from "../../src/client/connect.ts";
import { LeaseUnavailableError } from "../../src/client/errors.ts";
import type { Lease } from "../../src/client/lease.ts";
import { Leases } from "../../src/client/leases.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { layerOver, StoreExecutor } from "../../src/executor/index.ts";
import { FencedResource } from "../../src/guards/fenced-resource.ts";
import { StaleFenceError } from "../../src/guards/stale-fence-error.ts";
import { MemoryStore } from "../../src/store/index.ts";
import { ClockedStore } from "../executor/clocked-store.ts";
import { runUntilSettled } from "../executor/helpers.ts";
import { clientWorld, freeze, thaw } from "./helpers.ts";

describe("close", () => {
  it("leaves no timer of renewals or of the watch for suspends behind", async () => {
    const { env, leases } = clientWorld();
    const lease = await leases.acquire("job");
    await lease.release();
    await leases.close();
    expect(env.pendingTimers).toBe(0);
  });
});

describe("tryAcquire", () => {
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
});

describe("acquire", () => {
  it("gets the lease when it is released, by a notification, without having looked in between", async () => {
    const { env, store, leases, other } = clientWorld({ holder: "waiter" });
    const holder = other("holder");
    const lease = await holder.acquire("job", { ttl: "60s", autoRenew: false });
    const waiting = leases.acquire("job", { wait: "30s" });
    await env.advance(500);
    const before = { ...store.calls };
    await lease.release();
    const got = await waiting;
    expect(got.fence).toBe(2n);
    expect(store.calls.apply - before.apply).toBeLessThanOrEqual(2);
    expect(store.calls.read - before.read).toBeLessThanOrEqual(2);
  });

  it("gets a lease that was released before its watch was open", async () => {
    const env = new ManualEnv();
    const store = new MemoryStore({ env });
    const executor = new StoreExecutor({ store, env, policy: { generations: "count" } });
    const held = await new Leases({ executor, env, holder: "them" }).acquire("job");
    const late = layerOver(executor, {
      watch: async (scope, listener) => {
        await held.release();
        return await executor.watch(scope, listener);
      },
    });
    const leases = new Leases({ executor: late, env, holder: "me" });
    const waiting = leases.acquire("job", { wait: "1m" });
    await env.advance(1);
    expect((await waiting).fence).toBe(2n);
  });

  it("watches only when it has to wait", async () => {
    const { leases, store } = clientWorld();
    let watches = 0;
    Object.assign(store, {
      watch: async () => {
        watches += 1;
      },
    });
    await leases.acquire("job", { wait: "1m" });
    expect(watches).toBe(0);
  });

  it("looks at most now and then while it waits, however many wait", async () => {
    const { env, store, leases, other } = clientWorld({ holder: "waiter" });
    await other("holder").acquire("job", { ttl: "10m", autoRenew: false });
    const waiting = Array.from({ length: 20 }, () => leases.acquire("job", { wait: "2m" }).catch(() => null));
    await env.advance(1_000);
    const before = store.calls.read + store.calls.apply;
    await env.advance(60_000);
    const commandsPerSecond = (store.calls.read + store.calls.apply - before) / 60;
    expect(commandsPerSecond).toBeLessThan(2);
    await runUntilSettled(env, Promise.all(waiting), 200_000);
  });

  it("serves all waiters, in order, over a store that announces nothing", async () => {
    const env = new ManualEnv();
    const leases = new Leases({
      executor: new StoreExecutor({ store: new ClockedStore(env), env }),
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
});

describe("acquireAll", () => {
  it("of free names is one call to the store, and so is their release", async () => {
    const { leases, store } = clientWorld();
    const set = await leases.acquireAll(["a", "b", "c"]);
    expect(store.calls).toEqual({ read: 0, apply: 1, writes: 3 });
    await set.release();
    expect(store.calls).toEqual({ read: 0, apply: 2, writes: 6 });
  });

  it("waits for a store that does not answer, as acquire does, if it may wait", async () => {
    const { leases, store, env } = clientWorld();
    store.writeFaults = ["failed-before"];
    const set = await runUntilSettled(env, leases.acquireAll(["a", "b"], { wait: "5s" }));
    expect(set.isHeld()).toBe(true);
  });

  it("says so when what it was granted is over at once", async () => {
    const { leases, env, store } = clientWorld();
    const asking = leases.acquireAll(["a", "b"], { wait: 0, ttl: 1_000, autoRenew: false });
    const apply = store.apply.bind(store);
    store.apply = async (writes) => {
      const reply = await apply(writes);
      await env.advance(2_000);
      return reply;
    };
    await expect(asking).rejects.toMatchObject({ name: expect.stringMatching(/^Lease/) });
  });

  it("releases what it got when the store fails for one of them", async () => {
    const { leases, store, other } = clientWorld();
    await leases.acquireAll(["b"]).then((set) => set.release());
    store.writeFaults = ["failed-before"];
    await expect(leases.acquireAll(["a", "b"], { wait: 0 })).rejects.toThrow(LeaseUnavailableError);
    for (const name of ["a", "b"]) expect((await other("you").tryAcquire(name)).ok).toBe(true);
  });
});

describe("run", () => {
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
