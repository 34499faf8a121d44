/** Leases through the executor while Redis loses data: a fence never goes back. */
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startRedis } from "../../../../../scripts/engines/index.mjs";
import { recordFence } from "../../../src/core/index.ts";
import { type CommandOutcome, StoreExecutor } from "../../../src/executor/index.ts";
import { openRedisStore, type RedisStore } from "../../../src/stores/redis/index.ts";
import { until } from "../records.ts";

let server: Awaited<ReturnType<typeof startRedis>>;
let admin: Redis;
const opened: RedisStore[] = [];

beforeEach(async () => {
  server = await startRedis({ flags: ["--appendonly", "no", "--save", ""] });
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

/** Takes the lease and gives it back, several times; the last fence. */
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
