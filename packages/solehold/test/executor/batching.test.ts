import { describe, expect, it } from "vitest";
import type { LeaseKey } from "../../src/core/index.ts";
import { ManualEnv, settle } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  MemoryStore,
  type WriteResult,
} from "../../src/store/index.ts";
import { applied, KEY, runUntilSettled, world } from "./helpers.ts";

const names = (count: number): { tenant: string; name: string }[] =>
  Array.from({ length: count }, (_, index) => ({ tenant: "default", name: `job-${index}` }));

describe("operations of one turn", () => {
  it("travel as one store call each way, and a warm key needs no read", async () => {
    const { executor, store } = world();
    const keys = names(100);
    const grants = await Promise.all(
      keys.map((key) => executor.execute({ op: "acquire", key, holder: "a", ttlMs: 5_000 })),
    );
    expect(store.calls).toEqual({ read: 0, apply: 1, writes: 100 });
    await Promise.all(
      grants.map((grant, index) =>
        executor.execute({
          op: "renew",
          key: keys[index] ?? KEY,
          holder: "a",
          token: applied(grant).token,
          ttlMs: 5_000,
        }),
      ),
    );
    expect(store.calls).toEqual({ read: 0, apply: 2, writes: 200 });
  });

  it("are shared out among the calls that a store wants in flight, but not into crumbs", async () => {
    const batches: number[] = [];
    const memory = new MemoryStore({ env: new ManualEnv() });
    const store = Object.assign(Object.create(memory) as MemoryStore, {
      capabilities: { ...memory.capabilities, maxBatch: 100, maxConcurrentCalls: 2, minBatch: 16 },
      read: (keys: readonly LeaseKey[]) => memory.read(keys),
      apply: (writes: readonly ConditionalWrite[]) => {
        batches.push(writes.length);
        return memory.apply(writes);
      },
      now: () => memory.now(),
    });
    const executor = new StoreExecutor({ store });
    await executor.read(KEY);
    const acquireAll = (count: number, prefix: string): Promise<unknown> =>
      Promise.all(
        names(count).map(({ tenant, name }) =>
          executor.execute({
            op: "acquire",
            key: { tenant, name: prefix + name },
            holder: "a",
            ttlMs: 5_000,
          }),
        ),
      );
    await acquireAll(64, "many-");
    expect(batches.splice(0)).toEqual([32, 32]);
    await acquireAll(20, "few-");
    expect(batches.splice(0)).toEqual([16, 4]);
    await acquireAll(10, "handful-");
    expect(batches.splice(0)).toEqual([10]);
    await acquireAll(300, "crowd-");
    expect(batches.splice(0)).toEqual([100, 100, 50, 50]);
  });

  it("on one key are sent one after the other, and each gets its own answer", async () => {
    const { executor, store } = world();
    const outcomes = await Promise.all(
      ["a", "b", "c"].map((holder) => executor.execute({ op: "acquire", key: KEY, holder, ttlMs: 5_000 })),
    );
    expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual(["applied", "refused", "refused"]);
    expect(store.calls.apply).toBeGreaterThan(1);
  });

  it("alone leave in the same turn", async () => {
    const { executor, store } = world();
    await executor.read(KEY);
    const before = store.calls.apply;
    const alone = executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 });
    await settle();
    expect(store.calls.apply).toBe(before + 1);
    await alone;
  });

  it("cost one call for a cold key that has no record, once the floor is known", async () => {
    const { executor, store } = world();
    await executor.read(KEY);
    const before = { ...store.calls };
    applied(
      await executor.execute({
        op: "acquire",
        key: { tenant: "default", name: "cold" },
        holder: "a",
        ttlMs: 5_000,
      }),
    );
    expect(store.calls.read - before.read).toBe(0);
    expect(store.calls.apply - before.apply).toBe(1);
  });
});

describe("an answer that breaks the contract", () => {
  it("is nobody's but the one's whom it concerns", async () => {
    const { env, executor, store, memory } = world({ commandTimeoutMs: 1_000 });
    await executor.read(KEY);
    store.apply = async (writes) => {
      const reply = await memory.apply(writes);
      const nonsense = { kind: "conflict" } as unknown as WriteResult;
      const results = reply.results.map((result, index) => (index === 1 ? nonsense : result));
      return { ...reply, results };
    };
    const commands = names(3).map((key) =>
      executor.execute({ op: "acquire", key, holder: "a", ttlMs: 5_000 }),
    );
    const outcomes = await runUntilSettled(env, Promise.all(commands));
    // The one in the middle found by reading that it was applied.
    expect(outcomes.map(({ kind }) => kind)).toEqual(["applied", "applied", "applied"]);
  });

  it.each([
    ["nothing", undefined],
    ["an object without results", {}],
    ["fewer results than there were writes", { storeTimeMs: null, results: [] }],
  ])("is found out by looking: %s", async (_, nonsense) => {
    const { env, executor, store, memory } = world({ commandTimeoutMs: 1_000 });
    await executor.read(KEY);
    store.apply = async (writes) => {
      await memory.apply(writes);
      return nonsense as ApplyReply;
    };
    const outcome = await runUntilSettled(
      env,
      executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }),
    );
    expect(outcome.kind).toBe("applied");
  });
});

describe("a remembered version", () => {
  it("that is out of date leads to a fresh decision, never to a wrong one", async () => {
    const { executor, another } = world();
    const other = another();
    const { token } = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    applied(await other.execute({ op: "revoke", key: KEY }));
    expect(await executor.execute({ op: "renew", key: KEY, holder: "a", token, ttlMs: 5_000 })).toMatchObject(
      {
        kind: "refused",
        decision: { reason: "LEASE_REVOKED" },
      },
    );
  });

  it("never answers a denial by itself", async () => {
    const { executor, another } = world();
    const other = another();
    const { token } = applied(await other.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 5_000 }));
    expect((await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 })).kind).toBe(
      "refused",
    );
    applied(await other.execute({ op: "release", key: KEY, holder: "b", token }));
    // What is remembered says "held"; what is there says "free".
    applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
  });

  it("is forgotten when there are too many, and nothing but a round trip is lost", async () => {
    const { executor } = world({ cacheSize: 10 });
    for (const key of names(50))
      applied(await executor.execute({ op: "acquire", key, holder: "a", ttlMs: 5_000 }));
    for (const key of names(50)) expect(await executor.read(key)).toMatchObject({ live: true, holder: "a" });
  });

  it("is kept for as long as it is used, however many others come and go", async () => {
    const { executor, store } = world({ cacheSize: 10 });
    const { token } = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    let reads = 0;
    for (const key of names(50)) {
      applied(await executor.execute({ op: "acquire", key, holder: "a", ttlMs: 5_000 }));
      const before = store.calls.read;
      applied(await executor.execute({ op: "renew", key: KEY, holder: "a", token, ttlMs: 5_000 }));
      reads += store.calls.read - before;
    }
    expect(reads).toBe(0);
  });
});

describe("many writers on one key", () => {
  it("all get an answer within a bound, and exactly one holds it", async () => {
    const { executor, another, env } = world();
    const executors = [executor, ...Array.from({ length: 15 }, () => another())];
    const attempts = executors.flatMap((each, index) =>
      [0, 1, 2, 3].map((turn) =>
        each.execute({ op: "acquire", key: KEY, holder: `h${index}-${turn}`, ttlMs: 60_000 }),
      ),
    );
    const outcomes = await runUntilSettled(env, Promise.all(attempts));
    expect(outcomes.filter((outcome) => outcome.kind === "applied")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome.kind === "refused")).toHaveLength(63);
  });
});
