/** How many requests things cost, and what every request says. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Leases } from "../../../src/client/leases.ts";
import { type Env, realEnv } from "../../../src/env/index.ts";
import { StoreExecutor } from "../../../src/executor/index.ts";
import { openObjectStore } from "../../../src/stores/object/index.ts";
import { recordOf, rejection, writeOf } from "../records.ts";
import { FakeServer } from "./fake-server.ts";

let server: FakeServer;
let url: string;

beforeEach(async () => {
  server = new FakeServer();
  url = await server.start();
});

afterEach(() => server.stop());

/**
 * Whatever is pending is answered together, a tenth of a second later on a clock that nothing else moves: so the load
 * of the machine that this runs on does not matter.
 */
function slowServer(): Env {
  let nowMs = Date.parse("2030-01-01T00:00:00Z");
  let pending: (() => void)[] = [];
  let quiet: NodeJS.Timeout | undefined;
  const answer = (): void => {
    nowMs += 100;
    for (const resolve of pending) resolve();
    pending = [];
  };
  server.manners.nowMs = () => nowMs;
  server.manners.hold = () =>
    new Promise((resolve) => {
      pending.push(resolve);
      clearTimeout(quiet);
      quiet = setTimeout(answer, 30);
    });
  return {
    monotonicMs: () => nowMs,
    wallMs: () => nowMs,
    timer: (delayMs, callback, options) => realEnv.timer(delayMs, callback, options),
    defer: (callback) => realEnv.defer(callback),
    randomBytes: (length) => realEnv.randomBytes(length),
    random: () => realEnv.random(),
  };
}

const sentMethods = () => server.requests.map(({ method }) => method);

describe("requests", () => {
  // With calls of a thousand leases, the time of the slowest of them made the store's clock useless for all.
  it("of a round of renewals are one for each lease, however many leases and however slow the server", async () => {
    const count = 200;
    const env = slowServer();
    const store = await openObjectStore({ url, env, clockSkewMs: 0 });
    const leases = new Leases({ executor: new StoreExecutor({ store, env }), env, holder: "us" });
    const attempts = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        leases.tryAcquire(`job-${index}`, { ttl: "12s", autoRenew: false }),
      ),
    );
    server.requests.length = 0;
    const renewed = await Promise.all(attempts.map((attempt) => attempt.ok && attempt.lease.renew()));
    expect(new Set(renewed)).toEqual(new Set([true]));
    expect(sentMethods()).toEqual(Array.from({ length: count }, () => "PUT"));
    server.manners.hold = null;
    await leases.close();
  });

  it("that read ask caches not to answer", async () => {
    const store = await openObjectStore({ url });
    await store.read([recordOf("db").key]);
    const reads = server.requests.filter(({ method }) => method === "GET");
    expect(reads.map(({ headers }) => headers["cache-control"])).toEqual(reads.map(() => "no-cache"));
  });
});

describe("a cache on the way", () => {
  it("is noticed at opening, and named", async () => {
    server.manners.age = "7";
    expect(await rejection(openObjectStore({ url }))).toMatchObject({
      kind: "config",
      message: expect.stringMatching(
        /a cache answered for it \(Age: 7\): let these objects bypass the cache$/,
      ),
    });
  });

  it("that comes later makes reads fail, and is no clock", async () => {
    const store = await openObjectStore({ url });
    server.manners.age = "0";
    expect(await rejection(store.read([recordOf("db").key]))).toMatchObject({
      kind: "config",
      outcome: "not-applied",
      message: expect.stringContaining("a cache answered"),
    });
  });
});

describe("the time", () => {
  it("is in every reply, also of two writes of which one was refused", async () => {
    const store = await openObjectStore({ url });
    const { key } = recordOf("db");
    const replies = [
      await store.read([key]),
      await store.apply([writeOf(recordOf("db"))]),
      await store.apply([writeOf(recordOf("db")), writeOf(recordOf("other"))]),
      await store.apply([{ key, expected: null, next: null }]),
    ];
    for (const { storeTimeMs } of replies) expect(storeTimeMs).toBeGreaterThan(1.7e12);
  });

  it("that a server stops sending makes a write's outcome unknown, because nothing can be judged without it", async () => {
    const store = await openObjectStore({ url });
    server.manners.date = "missing";
    const { key } = recordOf("db");
    expect(await rejection(store.apply([writeOf(recordOf("db"))]))).toMatchObject({ outcome: "unknown" });
    expect(await rejection(store.read([key]))).toMatchObject({
      kind: "config",
      message: expect.stringContaining("it sends no Date header"),
    });
  });

  it("of servers with several clocks is two seconds wide unless the user says otherwise", async () => {
    const skewOf = async (options: { url: string; clockSkewMs?: number }) =>
      (await openObjectStore(options)).capabilities.clockSkewMs;
    expect(await skewOf({ url })).toBe(2_000);
    expect(await skewOf({ url: `${url}?clockSkewMs=500` })).toBe(500);
    expect(await skewOf({ url, clockSkewMs: 0 })).toBe(0);
  });
});
