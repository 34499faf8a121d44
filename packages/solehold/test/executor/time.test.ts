import { describe, expect, it } from "vitest";
import type { ClockReading } from "../../src/core/index.ts";
import { type Env, ManualEnv } from "../../src/env/index.ts";
import { StoreExecutor } from "../../src/executor/index.ts";
import { StoreClock, type TimeSample } from "../../src/executor/store-time.ts";
import { StoreError } from "../../src/store/index.ts";
import { ClockedStore } from "./clocked-store.ts";
import { applied, KEY, refused } from "./helpers.ts";

const DRIFT = { driftRatio: 0.01, tickMs: 2 };

/** Both own clocks, in step. */
function at(ms: number): ClockReading {
  return { monotonicMs: ms, wallMs: ms };
}

function farStore(clock: "reply" | "none" = "reply") {
  const env = new ManualEnv();
  const store = new ClockedStore(env, clock);
  const executor = (): StoreExecutor =>
    new StoreExecutor({ store, env, drift: DRIFT, policy: { maxTtlMs: 60_000 } });
  return { env, store, executor };
}

function clockWith(changes: { granularityMs?: number; skewMs?: number } = {}): StoreClock {
  return new StoreClock({ drift: DRIFT, granularityMs: 0, skewMs: 0, observeForMs: 1_000, ...changes });
}

function learn(clock: StoreClock, sample: Omit<TimeSample, "serverChangedAtMs">): void {
  clock.learn({ ...sample, serverChangedAtMs: null });
}

describe("what a client knows of its store's clock", () => {
  it("is at least the last reply plus what passed since its RECEIPT, at most plus what passed since SENDING", () => {
    const clock = clockWith();
    learn(clock, { sent: at(100), received: at(300), storeTimeMs: 5_000 });
    expect(clock.interval(at(300))).toEqual({ earliestMs: 5_000, latestMs: 5_202, stampMs: 5_202 });
    const latestMs = Math.ceil(5_000 + 1_210 * 1.01);
    expect(clock.interval(at(1_310))).toEqual({ earliestMs: 6_000, latestMs, stampMs: latestMs });
  });

  it("counts a coarse clock as anything within its step", () => {
    const clock = clockWith({ granularityMs: 1_000 });
    learn(clock, { sent: at(100), received: at(100), storeTimeMs: 5_000 });
    expect(clock.interval(at(100))).toEqual({ earliestMs: 5_000, latestMs: 6_000, stampMs: 6_000 });
  });

  it("keeps the narrower of two samples", () => {
    const clock = clockWith();
    learn(clock, { sent: at(0), received: at(10), storeTimeMs: 1_000 });
    learn(clock, { sent: at(20), received: at(520), storeTimeMs: 1_030 });
    const interval = clock.interval(at(520));
    expect((interval?.latestMs ?? 0) - (interval?.earliestMs ?? 0)).toBeLessThan(30);
    expect(clock.jumps).toBe(0);
  });

  it.each([
    ["forward", 4_000],
    ["back", -4_000],
  ])("notices a jump %s, and trusts the clock again only after the longest lease", (_direction, byMs) => {
    const clock = clockWith();
    learn(clock, { sent: at(0), received: at(10), storeTimeMs: 10_000 });
    learn(clock, { sent: at(100), received: at(110), storeTimeMs: 10_100 + byMs });
    expect(clock.jumps).toBe(1);
    expect(clock.mustObserve(110)).toBe(true);
    expect(clock.mustObserve(110 + 1_009)).toBe(true);
    expect(clock.mustObserve(110 + 1_010)).toBe(false);
  });

  it("is wide enough for all clocks of a store that has several, none of which is a jump of another", () => {
    const clock = clockWith({ skewMs: 300 });
    learn(clock, { sent: at(100), received: at(100), storeTimeMs: 5_000 });
    expect(clock.interval(at(100))).toEqual({ earliestMs: 4_700, latestMs: 5_300, stampMs: 5_300 });
    for (const storeTimeMs of [4_850, 5_140]) {
      learn(clock, { sent: at(100), received: at(100), storeTimeMs });
      expect(clock.jumps).toBe(0);
    }
    learn(clock, { sent: at(100), received: at(100), storeTimeMs: 6_000 });
    expect(clock.jumps).toBe(1);
  });

  it("is worth deciding on as long as asking again could not make it much better", () => {
    const clock = clockWith({ granularityMs: 1_000, skewMs: 2_000 });
    learn(clock, { sent: at(100), received: at(120), storeTimeMs: 5_000 });
    const fresh = clock.interval(at(120));
    if (fresh === null) throw new Error("the clock knows the time");
    expect(clock.isNarrow(fresh, 1_000)).toBe(true);
    expect(clock.isNarrow({ ...fresh, latestMs: fresh.latestMs + 100 }, 1_000)).toBe(false);
    expect(clock.isNarrow({ ...fresh, latestMs: fresh.latestMs + 100 }, 10_000)).toBe(true);
  });

  it("is not used to judge others for the longest lease after another server took over, whoever asks", () => {
    const clock = clockWith();
    clock.learn({ sent: at(0), received: at(10), storeTimeMs: 9_000, serverChangedAtMs: 8_600 });
    expect(clock.mustObserve(10 + 605)).toBe(true);
    expect(clock.mustObserve(10 + 607)).toBe(false);
    expect(clock.jumps).toBe(0);
  });

  it("is used at once when the other server took over longer ago than any lease lasts", () => {
    const clock = clockWith();
    clock.learn({ sent: at(0), received: at(10), storeTimeMs: 9_000, serverChangedAtMs: 8_000 });
    expect(clock.mustObserve(10)).toBe(false);
  });
});

describe("a store that says that it lost data", () => {
  it("grants nothing on an absent record for the longest lease, to the client that got that answer", async () => {
    const { env, store, executor } = farStore();
    const [witness, stranger] = [executor(), executor()];
    await witness.read(KEY);
    store.failNext = new StoreError("data-loss", "the last writes are gone", { outcome: "not-applied" });
    await expect(witness.read(KEY)).rejects.toThrow("the last writes are gone");
    const attempt = refused(await witness.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    expect(attempt.decision).toMatchObject({ reason: "FENCE_WENT_BACK", heldUntilMs: expect.any(Number) });
    await env.advance(60_000);
    refused(await witness.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    await env.advance(601);
    applied(await witness.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    refused(await stranger.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 5_000 }));
  });
});

describe("with the time in replies only", () => {
  it("a record's expiry is written from the latest possible time, so it never ends before its holder's belief", async () => {
    const { env, store, executor } = farStore();
    const holder = executor();
    // The reply of the read takes 400 ms: the store's time is known only within that.
    store.afterReading = () => env.advance(400);
    const outcome = applied(await holder.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 10_000 }));
    const storeTimeAtReading = outcome.believedFrom.monotonicMs + store.offsetMs;
    expect(outcome.decision.lease.expiresAtMs).toBeGreaterThanOrEqual(
      storeTimeAtReading + outcome.validForMs,
    );
  });

  it("another's lease is judged dead only by the earliest possible time", async () => {
    const { env, store, executor } = farStore();
    const lease = applied(await executor().execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 1_000 }))
      .decision.lease;
    const contender = executor();
    const storeNow = (): number => env.monotonicMs() + store.offsetMs;
    await env.advance(lease.expiresAtMs - 1 - storeNow());
    expect(
      refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 })).decision
        .reason,
    ).toBe("LEASE_HELD_BY_OTHER");
    await env.advance(1);
    applied(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 }));
  });

  it("another's lease outlives its holder's belief where two servers of the store have clocks of their own", async () => {
    const { env, store, executor } = farStore();
    store.skewMs = 300;
    const granted = applied(await executor().execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 1_000 }));
    // The contender's server is ahead of the holder's.
    store.offsetMs += 300;
    const contender = executor();
    const believedUntilMs = granted.believedFrom.monotonicMs + granted.validForMs;
    await env.advance(believedUntilMs - 1 - env.monotonicMs());
    const early = refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 }));
    expect(early.decision.reason).toBe("LEASE_HELD_BY_OTHER");
  });

  it("a minimum hold is kept, although whoever released the lease knew the time badly", async () => {
    const { env, store, executor } = farStore();
    const key = { op: "acquire", key: KEY, ttlMs: 5_000 } as const;
    const { token } = applied(await executor().execute({ ...key, holder: "a", holdAtLeastMs: 10_000 }));
    store.beforeReading = async () => {
      store.beforeReading = async () => undefined;
      await env.advance(4_000);
    };
    const released = executor().execute({ op: "release", key: KEY, holder: "a", token });
    expect(applied(await released).decision.lease.endedAtMs).toBeGreaterThan(store.offsetMs + 8_000);
    const contender = executor();
    const ask = () => contender.execute({ ...key, holder: "b" });
    expect(refused(await ask()).decision.reason).toBe("LEASE_LOCK_DELAY");
    await env.advance(5_900);
    expect(refused(await ask()).decision.reason).toBe("LEASE_LOCK_DELAY");
    await env.advance(200);
    applied(await ask());
  });

  it("two clients whose wall clocks are 20 minutes apart agree on who holds it", async () => {
    const env = new ManualEnv();
    const store = new ClockedStore(env);
    const skewed = (byMs: number): StoreExecutor => {
      const view: Env = {
        monotonicMs: () => env.monotonicMs(),
        wallMs: () => env.wallMs() + byMs,
        timer: (delayMs, callback) => env.timer(delayMs, callback),
        defer: (callback) => env.defer(callback),
        randomBytes: (length) => env.randomBytes(length),
        random: () => env.random(),
      };
      return new StoreExecutor({ store, env: view, drift: DRIFT });
    };
    const [ahead, behind] = [skewed(600_000), skewed(-600_000)];
    applied(await ahead.execute({ op: "acquire", key: KEY, holder: "ahead", ttlMs: 5_000 }));
    refused(await behind.execute({ op: "acquire", key: KEY, holder: "behind", ttlMs: 5_000 }));
    await env.advance(5_100);
    applied(await behind.execute({ op: "acquire", key: KEY, holder: "behind", ttlMs: 5_000 }));
    refused(await ahead.execute({ op: "acquire", key: KEY, holder: "ahead", ttlMs: 5_000 }));
  });

  it("a store clock that jumps forward does not make a live lease claimable, and its holder can go on", async () => {
    const { env, store, executor } = farStore();
    const holder = executor();
    const contender = executor();
    const { token } = applied(await holder.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 10_000 }));
    refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 10_000 }));
    await env.advance(1_000);
    store.offsetMs += 3_600_000;
    const attempt = refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 10_000 }));
    expect(attempt.decision.reason).toBe("LEASE_HELD_BY_OTHER");
    expect(contender.clockJumps).toBe(1);
    await holder.read(KEY);
    applied(await holder.execute({ op: "renew", key: KEY, holder: "a", token, ttlMs: 10_000 }));
    // Nobody renews any more: after a whole ttl of observing the same version it may be taken.
    refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 10_000 }));
    await env.advance(10_000);
    refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 10_000 }));
    await env.advance(200);
    applied(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 10_000 }));
  });

  it("a store clock that jumps forward does not open a released key within its minimum hold", async () => {
    const { env, store, executor } = farStore();
    const [holder, contender] = [executor(), executor()];
    const owner = { key: KEY, holder: "a" };
    const hold = { ttlMs: 20_000, holdAtLeastMs: 10_000 };
    const { token } = applied(await holder.execute({ op: "acquire", ...owner, ...hold }));
    applied(await holder.execute({ op: "release", ...owner, token }));
    const ask = () => contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 5_000 });
    refused(await ask());
    store.offsetMs += 3_600_000;
    for (let askedMs = 1_000; askedMs < 10_000; askedMs += 1_000) {
      await env.advance(1_000);
      expect(refused(await ask()).decision.reason).toBe("LEASE_LOCK_DELAY");
    }
    await env.advance(11_500);
    applied(await ask());
  });

  it("a store clock that jumps back does not lock a key for longer than a ttl of observation", async () => {
    const { env, store, executor } = farStore();
    applied(await executor().execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 5_000 }));
    const contender = executor();
    refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 5_000 }));
    store.offsetMs -= 3_600_000;
    await env.advance(4_000);
    refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 5_000 }));
    await env.advance(1_100);
    applied(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 5_000 }));
  });
});

describe("with a store that has no clock", () => {
  it("a lease is taken over only after its version stood unchanged for a whole ttl since it was first seen", async () => {
    const { env, executor } = farStore("none");
    const holder = executor();
    const contender = executor();
    const { token } = applied(await holder.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 1_000 }));
    await env.advance(700);
    // First seen here, late: the count starts now.
    refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 }));
    await env.advance(250);
    applied(await holder.execute({ op: "renew", key: KEY, holder: "a", token, ttlMs: 1_000 }));
    await env.advance(800);
    // 1,050 ms after the first sight, but the version moved.
    refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 }));
    await env.advance(1_011);
    refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 }));
    await env.advance(1);
    const taken = applied(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 }));
    expect(taken.decision.lease.generation).toBe(2n);
    expect(
      refused(await holder.execute({ op: "renew", key: KEY, holder: "a", token, ttlMs: 1_000 })).decision
        .reason,
    ).toBe("LEASE_HELD_BY_OTHER");
  });

  it("the delay after an expiry is observed like the ttl before it", async () => {
    const { env, executor } = farStore("none");
    const lease = { op: "acquire", key: KEY, ttlMs: 1_000 } as const;
    applied(await executor().execute({ ...lease, holder: "a", lockDelayMs: 3_000 }));
    const contender = executor();
    refused(await contender.execute({ ...lease, holder: "b" }));
    await env.advance(3_900);
    refused(await contender.execute({ ...lease, holder: "b" }));
    await env.advance(200);
    applied(await contender.execute({ ...lease, holder: "b" }));
  });

  it("a minimum hold is refused by its name, and nothing is granted", async () => {
    const executor = farStore("none").executor();
    const outcome = await executor.execute({ op: "acquire", key: KEY, holder: "a", holdAtLeastMs: 1_000 });
    expect(outcome).toMatchObject({ kind: "refused", decision: { kind: "refused", field: "holdAtLeastMs" } });
    expect(await executor.read(KEY)).toBeNull();
  });

  it("a handoff is reserved for its successor until the deadline was observed to pass", async () => {
    const { env, executor } = farStore("none");
    const holder = executor();
    const { token } = applied(await holder.execute({ op: "acquire", key: KEY, holder: "a", ttlMs: 1_000 }));
    applied(
      await holder.execute({
        op: "handoff",
        key: KEY,
        holder: "a",
        token,
        successor: "heir",
        withinMs: 2_000,
      }),
    );
    const contender = executor();
    expect(
      refused(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 })).decision
        .reason,
    ).toBe("LEASE_HANDOFF_PENDING");
    await env.advance(2_022);
    applied(await contender.execute({ op: "acquire", key: KEY, holder: "b", ttlMs: 1_000 }));
  });
});
