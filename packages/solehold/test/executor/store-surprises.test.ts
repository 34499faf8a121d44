/** A store that surprises a process which remembers it: another clock, lost writes, late answers, a deleted record. */
import { describe, expect, it } from "vitest";
import { type LeaseKey, recordFence } from "../../src/core/index.ts";
import { ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  MemoryStore,
  type ReadReply,
  StoreError,
} from "../../src/store/index.ts";
import { ClockedStore } from "./clocked-store.ts";
import { applied, type Found, goBackTo, KEY, refused, storedIn } from "./helpers.ts";

describe("a store whose clock went back", () => {
  it("is asked before another's lease, known from a watch event, is judged over", async () => {
    const env = new ManualEnv();
    const store = new ClockedStore(env);
    const [holder, contender] = [new StoreExecutor({ store, env }), new StoreExecutor({ store, env })];
    await contender.read(KEY);
    store.offsetMs -= 3_600_000;
    applied(await holder.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 10_000 }));
    contender.onHint(KEY, await storedIn(store));
    // By the time that the contender knew, this lease was over an hour before it was granted.
    const contest = await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 10_000 });
    expect(refused(contest).decision.reason).toBe("LEASE_HELD_BY_OTHER");
  });
});

describe("a store that lost a renewal, and says that it lost data", () => {
  it("has its expiries judged by observation: the holder believes what it was answered", async () => {
    const env = new ManualEnv();
    const store = new ClockedStore(env);
    const [holder, contender] = [new StoreExecutor({ store, env }), new StoreExecutor({ store, env })];
    const owner = { key: KEY, holder: "a", ttlMs: 10_000 };
    const { token } = applied(await holder.execute({ op: "acquire", ...owner }));
    const before = (await storedIn(store)).record;
    await env.advance(9_000);
    applied(await holder.execute({ op: "renew", ...owner, token }));
    await goBackTo(before, store);
    store.failNext = new StoreError("data-loss", "the last writes are gone", { outcome: "not-applied" });
    await expect(contender.read(KEY)).rejects.toThrow("the last writes are gone");
    await env.advance(2_000);
    const contest = () => contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 10_000 });
    expect(refused(await contest()).decision.reason).toBe("LEASE_HELD_BY_OTHER");
    await env.advance(10_102);
    applied(await contest());
  });
});

/** Keeps back the answers to reads until they are let go; other calls pass. */
class SlowReads extends MemoryStore {
  #kept: (() => void)[] | null = null;

  keepBack(): void {
    this.#kept = [];
  }

  letGo(): void {
    for (const go of this.#kept ?? []) go();
    this.#kept = null;
  }

  override async read(...args: Parameters<MemoryStore["read"]>): Promise<ReadReply> {
    const reply = await super.read(...args);
    const kept = this.#kept;
    if (kept !== null) await new Promise<void>((resolve) => kept.push(resolve));
    return reply;
  }
}

describe("an answer to a read that was overtaken by a grant of this process", () => {
  it("is old, and not a sign that the store lost writes", async () => {
    const env = new ManualEnv();
    const store = new SlowReads({ env });
    const policy = { generations: "count" } as const;
    const [executor, other] = [
      new StoreExecutor({ store, env, policy }),
      new StoreExecutor({ store, env, policy }),
    ];
    const first = applied(await other.execute({ op: "acquire", key: KEY, holder: "them", ttlMs: 5_000 }));
    await executor.read(KEY);
    store.keepBack();
    const slow = executor.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 5_000 });
    await env.advance(1);
    applied(await other.execute({ op: "release", key: KEY, holder: "them", token: first.token }));
    const [released] = (await MemoryStore.prototype.read.call(store, [KEY])).records;
    executor.onHint(KEY, released as Found);
    applied(await executor.execute({ op: "acquire", key: KEY, holder: "c", ttlMs: 5_000 }));
    store.letGo();
    expect(refused(await slow).decision.reason).toBe("LEASE_HELD_BY_OTHER");
  });
});

/** A store without a clock, whose revision grows with every write, as that of etcd does. */
class RevisionStore extends ClockedStore {
  #revision = 0n;

  override async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    return { ...(await super.read(keys)), revision: this.#revision };
  }

  override async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    this.#revision += BigInt(writes.length);
    return await super.apply(writes);
  }
}

describe("a record that was deleted by hand, and a process that remembers it", () => {
  it("does not bar the key where the store's revision makes fences grow", async () => {
    const env = new ManualEnv();
    const store = new RevisionStore(env, "none");
    const executor = new StoreExecutor({ store, env });
    const request = { op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 } as const;
    const first = applied(await executor.execute(request));
    applied(await executor.execute({ ...request, op: "release", token: first.token }));
    const { version } = await storedIn(store);
    await store.apply([{ key: KEY, expected: version, next: null }]);
    const second = applied(await executor.execute(request));
    expect(recordFence(second.decision.lease)).toBeGreaterThan(recordFence(first.decision.lease));
  });
});
