/** Leases through the executor while Redis loses data: a fence never goes back. */
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import { Leases } from "../../../src/client/leases.ts";
import { recordFence } from "../../../src/core/index.ts";
import { type CommandOutcome, StoreExecutor } from "../../../src/executor/index.ts";
import { openRedisStore, type RedisStore } from "../../../src/stores/redis/index.ts";
import { until } from "../records.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
let admin: Redis;
const opened: RedisStore[] = [];

beforeEach(async () => {
  server = await startRedis({ flags: ["--appendonly", "no", "--save", "", "--enable-debug-command", "yes"] });
  admin = new Redis(server.url);
  admin.on("error", () => undefined);
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  admin.disconnect();
  await server.stop();
});

interface Replica {
  readonly store: RedisStore;
  readonly executor: StoreExecutor;
}

async function replica(): Promise<Replica> {
  const store = await openRedisStore({ url: server.url });
  opened.push(store);
  return { store, executor: new StoreExecutor({ store }) };
}

const key = (name: string) => ({ tenant: "default", name });

function acquire({ executor }: Replica, name: string, ttlMs = 30_000): Promise<CommandOutcome> {
  return executor.execute({ op: "acquire", key: key(name), holder: "worker", ttlMs });
}

/** The fence of a grant, and the token to end it with. */
async function granted(outcome: Promise<CommandOutcome>): Promise<{ fence: bigint; token: string }> {
  const answer = await outcome;
  if (answer.kind !== "applied") throw new Error(`not granted: ${JSON.stringify(answer)}`);
  return { fence: recordFence(answer.decision.lease), token: answer.token };
}

/** Acquires and releases the lease, several times; the last fence. */
async function cycle(holder: Replica, name: string, times: number): Promise<bigint> {
  let last = 0n;
  for (let count = 0; count < times; count += 1) {
    const { fence, token } = await granted(acquire(holder, name));
    expect(fence).toBeGreaterThan(last);
    last = fence;
    await holder.executor.execute({ op: "release", key: key(name), holder: "worker", token });
  }
  return last;
}

/**
 * Fences come from the store's time, as a client knows it when it decides: it may be ahead by a round trip and the clock's
 * resolution. Resolves once the store's clock is past this one.
 */
function clockPast(fence: bigint): Promise<unknown> {
  return until("the store's clock is past the fence", async () => {
    const [seconds = 0, micros = 0] = await admin.time();
    return BigInt(seconds) * 1_000_000n + BigInt(micros) > fence ? true : null;
  });
}

const NAMES = Array.from({ length: 60 }, (_, number) => `job/${number}`);

describe("a record that was deleted by hand", () => {
  it("does not bring a fence back: the next grant of each key is above the one that was lost", async () => {
    const [old, fresh] = [await replica(), await replica()];
    for (const name of NAMES) {
      await cycle(old, name, 3);
      const { fence } = await granted(acquire(old, name));
      await clockPast(fence);
      expect(await admin.del(`{solehold:}default/${name}`)).toBe(1);
      expect((await granted(acquire(fresh, name))).fence).toBeGreaterThan(fence);
    }
  });

  it("is noticed by whoever saw it: it grants nothing while the holder may believe", async () => {
    const old = await replica();
    const { fence } = await granted(acquire(old, "job"));
    await admin.del("{solehold:}default/job");
    const other = old.executor.execute({ op: "acquire", key: key("job"), holder: "another", ttlMs: 30_000 });
    expect(await other).toMatchObject({ kind: "refused", decision: { reason: "FENCE_WENT_BACK" } });
    expect(fence).toBeGreaterThan(0n);
  });
});

describe("after an old dump was restored into the running server", () => {
  it("no key is granted at or below a fence that was lost", async () => {
    const old = await replica();
    const highest = new Map<string, bigint>();
    for (const name of NAMES) await cycle(old, name, 2);
    await admin.save();
    // Half of them are in the dump with an older grant, and the rest not at all.
    const later = [...NAMES.slice(0, 30), ...NAMES.map((name) => `later/${name}`)];
    for (const name of later) highest.set(name, await cycle(old, name, 5));
    for (const fence of highest.values()) await clockPast(fence);
    await admin.call("DEBUG", "RELOAD", "NOSAVE");
    const fresh = await replica();
    for (const [name, lost] of highest) {
      expect((await granted(acquire(fresh, name))).fence).toBeGreaterThan(lost);
    }
  });
});

describe("after FLUSHALL", () => {
  it("whoever held is refused once with a clear reason, whoever is new gets a higher fence", async () => {
    const old = await replica();
    const before = await cycle(old, "job", 20);
    await admin.flushall();
    const refused = await acquire(old, "job");
    expect(refused).toMatchObject({
      kind: "unsettled",
      outcome: "not-applied",
      cause: { kind: "data-loss" },
    });
    expect(refused.kind === "unsettled" && refused.cause.message).toContain("lost data");
    const after = await granted(acquire(await replica(), "job"));
    expect(after.fence).toBeGreaterThan(before);
  });

  it("every lease of a process ends with a reason of its own, whichever call met the loss", async () => {
    const { executor } = await replica();
    const leases = new Leases({ executor, holder: "worker" });
    const held = [await leases.acquire("a"), await leases.acquire("b"), await leases.acquire("c")];
    await admin.flushall();
    await expect(executor.read(key("unrelated"))).rejects.toMatchObject({ kind: "data-loss" });
    for (const lease of held) await lease.renew().catch(() => undefined);
    expect(held.map(({ lossReason }) => lossReason)).toEqual(Array(3).fill("store-lost-data"));
    await leases.close();
  });

  it("a leader's term ends with a reason of its own, and after one maximal ttl it leads again by itself", async () => {
    const store = await openRedisStore({ url: server.url });
    const policy = { maxTtlMs: 1_500, defaultTtlMs: 900 };
    const leases = new Leases({ executor: new StoreExecutor({ store, policy }), holder: "elector" });
    const fences: bigint[] = [];
    let flushedAtUs = 0n;
    for await (const term of leases.elect("boss")) {
      fences.push(term.fence);
      if (fences.length === 2) break;
      const [seconds = 0, micros = 0] = await admin.time();
      flushedAtUs = BigInt(seconds) * 1_000_000n + BigInt(micros);
      await admin.flushall();
      await new Promise((resolve) => term.signal.addEventListener("abort", resolve, { once: true }));
      expect(term.lossReason).toBe("store-lost-data");
    }
    // A fence is the store's time of the grant: whoever held before the loss could believe for so long.
    expect(fences[1]).toBeGreaterThan(flushedAtUs + BigInt(policy.maxTtlMs) * 1_000n);
    await leases.close();
  });
});

describe("after a restart from an older snapshot", () => {
  it("no key is granted at or below a fence that was lost, whatever its record says", async () => {
    const old = await replica();
    await cycle(old, "ended", 2);
    await granted(acquire(old, "expired", 1));
    await admin.save();
    const lost = [await cycle(old, "ended", 20), await cycle(old, "young", 20)];
    await until("the short lease has ended", async () =>
      (await cycle(old, "expired", 20)) > 0n ? true : null,
    );
    await server.kill();
    await server.restart();
    const fresh = await replica();
    // Another run of the server answers: what was held before it is taken over once it was observed for a ttl.
    const observed = async (name: string): Promise<bigint> =>
      until(`${name} is granted`, async () => {
        const answer = await acquire(fresh, name);
        return answer.kind === "applied" ? recordFence(answer.decision.lease) : null;
      });
    const fences = await Promise.all(["ended", "young", "expired"].map(observed));
    for (const fence of fences) for (const before of lost) expect(fence).toBeGreaterThan(before);
    const next = await cycle(fresh, "another", 2);
    expect(next).toBeGreaterThan(lost[0]!);
  });

  it("a lease that is still held is renewed with its fence, and taken over with a higher one", async () => {
    const holder = await replica();
    const { fence, token } = await granted(acquire(holder, "held"));
    await admin.save();
    await server.kill();
    await server.restart();
    const renewed = await until("the holder is back", async () => {
      const answer = await holder.executor.execute({
        op: "renew",
        key: key("held"),
        holder: "worker",
        token,
      });
      return answer.kind === "applied" ? answer : null;
    });
    expect(recordFence(renewed.decision.lease)).toBe(fence);
    await holder.executor.execute({ op: "release", key: key("held"), holder: "worker", token });
    const taken = await granted(acquire(await replica(), "held"));
    expect(taken.fence).toBeGreaterThan(fence + 1_000n);
  });
});
