// Mistakes that the simulation found in the executor, each as the shortest story that shows it.
import { describe, expect, it } from "vitest";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { StoreClock } from "../../src/executor/store-time.ts";
import { type ApplyReply, type ConditionalWrite, MemoryStore, StoreError } from "../../src/store/index.ts";
import { ClockedStore } from "./clocked-store.ts";
import { applied, KEY, refused, runUntilSettled, world } from "./helpers.ts";

/** The machine of this env sleeps; the store, on the same test clock, does not. */
function sleep(env: ManualEnv, store: ClockedStore, ms: number): void {
  env.suspend(ms);
  store.offsetMs += ms;
}

describe("a machine that slept", () => {
  it("asks for the store's time before it stamps a grant, so the record outlasts the belief", async () => {
    const env = new ManualEnv();
    const store = new ClockedStore(env);
    const executor = new StoreExecutor({ store, env });
    const first = applied(await executor.execute({ op: "acquire", key: KEY, holder: "me", ttlMs: 5_000 }));
    applied(await executor.execute({ op: "release", key: KEY, holder: "me", token: first.token }));
    sleep(env, store, 60_000);
    const second = applied(await executor.execute({ op: "acquire", key: KEY, holder: "me", ttlMs: 5_000 }));
    const { storeTimeMs } = await store.read([KEY]);
    expect(second.validForMs).toBe(5_000);
    expect(second.decision.lease.expiresAtMs).toBeGreaterThanOrEqual((storeTimeMs ?? 0) + 5_000);
  });

  it("does not believe the time of an answer that it slept through", async () => {
    const env = new ManualEnv();
    const store = new ClockedStore(env);
    const executor = new StoreExecutor({ store, env });
    let slept = false;
    store.afterReading = async () => {
      if (!slept) sleep(env, store, 60_000);
      slept = true;
    };
    const grant = applied(await executor.execute({ op: "acquire", key: KEY, holder: "me", ttlMs: 5_000 }));
    const { storeTimeMs } = await store.read([KEY]);
    expect(grant.decision.lease.expiresAtMs).toBeGreaterThanOrEqual((storeTimeMs ?? 0) + 5_000);
  });

  it("does not take its own sleep for a jump of the store's clock", async () => {
    const env = new ManualEnv();
    const store = new ClockedStore(env);
    const executor = new StoreExecutor({ store, env });
    await executor.read(KEY);
    sleep(env, store, 60_000);
    await executor.read(KEY);
    expect(executor.clockJumps).toBe(0);
  });
});

describe("a reply that was overtaken by a later one", () => {
  it("is not taken for a jump of the store's clock", () => {
    const at = (ms: number) => ({ monotonicMs: ms, wallMs: ms });
    const drift = { driftRatio: 0.01, tickMs: 1 };
    const clock = new StoreClock({ drift, granularityMs: 1, skewMs: 0, observeForMs: 60_000 });
    clock.learn({ sent: at(100), received: at(151), storeTimeMs: 5_050, serverChangedAtMs: null });
    clock.learn({ sent: at(100), received: at(400), storeTimeMs: 5_001, serverChangedAtMs: null });
    expect(clock.jumps).toBe(0);
    clock.learn({ sent: at(500), received: at(510), storeTimeMs: 5_001, serverChangedAtMs: null });
    expect(clock.jumps).toBe(1);
  });
});

describe("an operator's command whose reply was lost", () => {
  it("does not strike the grant that came after the one it spoke of", async () => {
    const { env, store, executor, another } = world();
    const other = another();
    const old = applied(await other.execute({ op: "acquire", key: KEY, holder: "old", ttlMs: 1_000 }));
    await executor.read(KEY);
    store.writeFaults = ["reply-lost"];
    store.readFaults = ["failed", "failed"];
    const revoke = executor.execute({ op: "revoke", key: KEY });
    await env.advance(1);
    applied(await other.execute({ op: "release", key: KEY, holder: "old", token: old.token }));
    const next = applied(await other.execute({ op: "acquire", key: KEY, holder: "new", ttlMs: 60_000 }));
    const outcome = refused(await runUntilSettled(env, revoke));
    expect(outcome.decision.reason).toBe("LEASE_GENERATION_STALE");
    applied(await other.execute({ op: "renew", key: KEY, holder: "new", token: next.token, ttlMs: 60_000 }));
  });
});

/** Doubles every write on its way; the answer to the second copy arrives first. */
class DoublingStore extends MemoryStore {
  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    await super.apply(writes);
    return await super.apply(writes);
  }
}

describe("a request that was doubled on its way", () => {
  it("is recognised as applied when its second copy meets what the first has written", async () => {
    const env = new ManualEnv();
    const executor = new StoreExecutor({ store: new DoublingStore({ env }), env });
    const grant = applied(await executor.execute({ op: "acquire", key: KEY, holder: "me" }));
    const { token } = grant;
    expect(grant.decision.lease.renewals).toBe(0);
    applied(await executor.execute({ op: "revoke", key: KEY }));
    expect(
      refused(await executor.execute({ op: "renew", key: KEY, holder: "me", token })).decision.reason,
    ).toBe("LEASE_REVOKED");
  });
});

describe("what is remembered", () => {
  it("never refuses an idempotency key by itself: the key may have moved on", async () => {
    const { executor, another } = world();
    const other = another();
    const mine = applied(
      await executor.execute({ op: "acquire", key: KEY, holder: "me", ttlMs: 5_000, idempotencyKey: "one" }),
    );
    applied(await other.execute({ op: "release", key: KEY, holder: "me", token: mine.token }));
    const theirs = applied(await other.execute({ op: "acquire", key: KEY, holder: "you", ttlMs: 5_000 }));
    applied(await other.execute({ op: "release", key: KEY, holder: "you", token: theirs.token }));
    // The mark went with the next grant, so the key is free again, with any arguments.
    applied(
      await executor.execute({ op: "acquire", key: KEY, holder: "me", ttlMs: 9_000, idempotencyKey: "one" }),
    );
  });
});

/** Answers reads and writes, and leaves listings and watches without an answer. */
class MuteStore extends MemoryStore {
  override list(): Promise<never> {
    return new Promise(() => undefined);
  }

  override watch(): Promise<never> {
    return new Promise(() => undefined);
  }
}

describe("a store that never answers a listing or a watch", () => {
  it("holds nobody for longer than a call may take", async () => {
    const env = new ManualEnv();
    const executor = new StoreExecutor({ store: new MuteStore({ env }), env, callTimeoutMs: 1_000 });
    const listing = executor.list({ tenant: "default", prefix: "", limit: 10 });
    const watch = executor.watch({ tenant: null, prefix: "" }, () => undefined);
    const settled = await runUntilSettled(env, Promise.allSettled([listing, watch]), 2_000);
    expect(settled.map((each) => each.status === "rejected" && each.reason instanceof StoreError)).toEqual([
      true,
      true,
    ]);
    expect(env.pendingTimers).toBe(0);
  });
});

describe("collection over a store without a clock", () => {
  it("is refused: a machine whose clock runs ahead would delete what is alive", async () => {
    const env = new ManualEnv();
    const executor = new StoreExecutor({ store: new ClockedStore(env, "none"), env });
    await expect(executor.collect("default")).rejects.toThrow("has no clock");
  });
});
