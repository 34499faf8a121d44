import { describe, expect, it } from "vitest";
import type { StoreExecutor } from "../../src/executor/index.ts";
import { applied, KEY, refused, world } from "./helpers.ts";

const HOUR_MS = 3_600_000;
const BY_CLOCK = { policy: { generations: "clock" }, retentionMs: HOUR_MS } as const;

async function grantAndRelease(executor: StoreExecutor, name: string, times = 1): Promise<bigint> {
  const key = { tenant: "default", name };
  let generation = 0n;
  for (let turn = 0; turn < times; turn += 1) {
    const { token, decision } = applied(
      await executor.execute({ op: "acquire", key, holder: "a", ttlMs: 1_000 }),
    );
    applied(await executor.execute({ op: "release", key, holder: "a", token }));
    generation = decision.lease.generation;
  }
  return generation;
}

describe("collection", () => {
  it("leaves a bounded store after many one-off keys", async () => {
    const { executor, memory, env } = world(BY_CLOCK);
    let most = 0;
    for (let round = 0; round < 40; round += 1) {
      for (let index = 0; index < 50; index += 1)
        await grantAndRelease(executor, `round-${round}-job-${index}`);
      await env.advance(HOUR_MS / 2);
      await executor.collect("default");
      const { records } = await memory.list({ tenant: "default", prefix: "", limit: 10_000 });
      most = Math.max(most, records.length);
    }
    // 2,000 keys were used; those of at most a few retentions are left at any time.
    expect(most).toBeLessThan(500);
  });

  it("never lets a fence go back: a collected key starts above every generation it ever had", async () => {
    const { executor, another, env } = world(BY_CLOCK);
    const last = await grantAndRelease(executor, "job", 7);
    await env.advance(HOUR_MS);
    expect(await executor.collect("default")).toEqual({ scanned: 1, deleted: 1 });
    expect(await executor.read(KEY)).toBeNull();
    for (const each of [another(), executor]) {
      const { decision, token } = applied(
        await each.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 }),
      );
      expect(decision.lease.generation).toBeGreaterThan(last);
      applied(await each.execute({ op: "release", key: KEY, holder: "b", token }));
    }
  });

  it("deletes tickets that processes left behind when they died, and no others", async () => {
    const { executor, env } = world(BY_CLOCK);
    const ticket = { id: "gone", turn: 1, withinMs: 250, priority: 0 };
    await executor.tickets?.put(KEY, ticket, null);
    await env.advance(HOUR_MS + 20_000);
    await executor.tickets?.put(KEY, { ...ticket, id: "alive" }, null);
    expect(await executor.collect("default")).toEqual({ scanned: 2, deleted: 0 });
    await env.advance(20_000);
    expect(await executor.collect("default")).toEqual({ scanned: 2, deleted: 1 });
    expect(await executor.tickets?.list(KEY)).toMatchObject([{ id: "alive" }]);
  });

  it("leaves alone what was granted again after it was listed as ended", async () => {
    const { executor, another, memory, env } = world(BY_CLOCK);
    await grantAndRelease(executor, "job");
    await env.advance(HOUR_MS);
    const list = memory.list.bind(memory);
    memory.list = async (query) => {
      const page = await list(query);
      if (page.records.length > 0)
        applied(await another().execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 60_000 }));
      return page;
    };
    expect(await executor.collect("default")).toEqual({ scanned: 1, deleted: 0 });
    expect(await another().read(KEY)).toMatchObject({ holder: "b", live: true });
  });

  it("deletes what ended a whole retention ago, and nothing sooner", async () => {
    const { executor, env } = world(BY_CLOCK);
    await grantAndRelease(executor, "job");
    await env.advance(HOUR_MS - 1);
    expect(await executor.collect("default")).toEqual({ scanned: 1, deleted: 0 });
    await env.advance(1);
    expect(await executor.collect("default")).toEqual({ scanned: 1, deleted: 1 });
  });

  it("leaves alone what is live, what ended lately, and what carries a term", async () => {
    const policy = { generations: "clock", maxTtlMs: 100 * HOUR_MS } as const;
    const { executor, env } = world({ retentionMs: HOUR_MS, policy });
    const live = { tenant: "default", name: "live" };
    applied(await executor.execute({ op: "acquire", key: live, holder: "a", ttlMs: 50 * HOUR_MS }));
    const termed = { tenant: "default", name: "termed" };
    const { token } = applied(
      await executor.execute({ op: "acquire", key: termed, holder: "a", ttlMs: 1_000, term: 5n }),
    );
    applied(await executor.execute({ op: "release", key: termed, holder: "a", token }));
    await grantAndRelease(executor, "old", 9);
    await env.advance(3 * HOUR_MS);
    await grantAndRelease(executor, "lately");
    await executor.collect("default");
    expect(await executor.read({ tenant: "default", name: "old" })).toBeNull();
    for (const name of ["live", "termed", "lately"]) {
      expect(await executor.read({ tenant: "default", name })).not.toBeNull();
    }
  });

  it("of one tenant leaves the others' records alone", async () => {
    const { executor, env } = world(BY_CLOCK);
    const foreign = { tenant: "other", name: "job" };
    const { token } = applied(
      await executor.execute({ op: "acquire", key: foreign, holder: "a", ttlMs: 1_000 }),
    );
    applied(await executor.execute({ op: "release", key: foreign, holder: "a", token }));
    await env.advance(2 * HOUR_MS);
    await executor.collect("default");
    expect(await executor.read(foreign)).not.toBeNull();
  });

  it("is refused where generations are counted from the last record, with the way out", async () => {
    await expect(world().executor.collect("default")).rejects.toThrow(/policy.generations to clock/);
  });
});

describe("a store that lost its last writes", () => {
  type World = ReturnType<typeof world>;

  /** The store comes back with an older state of the key, or without it. */
  async function lose({ memory }: World, what: "the last writes" | "the record"): Promise<void> {
    const [current] = (await memory.read([KEY])).records;
    if (current?.kind !== "found") throw new Error("the record is there");
    const older = { ...current.record, generation: 1n, nonce: "older" };
    const next = what === "the record" ? null : older;
    await memory.apply([{ key: KEY, expected: current.version, next }]);
  }

  async function reasonOf(executor: StoreExecutor): Promise<string> {
    return refused(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 1_000 })).decision
      .reason;
  }

  it("is noticed by a process that saw a higher fence: the grant is refused, not handed out again", async () => {
    const given = world();
    const { executor, another, env } = given;
    await grantAndRelease(executor, "job", 3);
    await lose(given, "the last writes");
    // And again, although by now the older state is what was seen last; for good, since counting would repeat a fence.
    for (let time = 0; time < 2; time += 1) {
      expect(await reasonOf(executor)).toBe("FENCE_WENT_BACK");
      await env.advance(2 * HOUR_MS);
    }
    // A process that never saw more cannot know.
    applied(await another().execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 }));
  });

  it("is noticed by a process that has had to do with many other keys since", async () => {
    const given = world({ cacheSize: 10 });
    const { executor } = given;
    await grantAndRelease(executor, "job", 3);
    for (let other = 0; other < 6; other += 1) await grantAndRelease(executor, `other-${other}`);
    await lose(given, "the last writes");
    expect(await reasonOf(executor)).toBe("FENCE_WENT_BACK");
  });

  it.each(["the last writes", "the record"] as const)(
    "and %s is trusted again after one ttl, when the holder of the lost lease cannot believe any more",
    async (what) => {
      const given = world(BY_CLOCK);
      const { executor, env } = given;
      const last = await grantAndRelease(executor, "job", 3);
      await lose(given, what);
      const { decision } = refused(
        await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 1_000 }),
      );
      expect(decision).toMatchObject({ reason: "FENCE_WENT_BACK", heldUntilMs: expect.any(Number) });
      await env.advance(1_000);
      expect(await reasonOf(executor)).toBe("FENCE_WENT_BACK");
      await env.advance(20);
      const granted = applied(await executor.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 1_000 }));
      expect(granted.decision.lease.generation).toBeGreaterThan(last);
    },
  );

  it("is noticed when the record is gone altogether", async () => {
    const given = world();
    await grantAndRelease(given.executor, "job", 3);
    await lose(given, "the record");
    expect(await reasonOf(given.executor)).toBe("FENCE_WENT_BACK");
  });
});
