// The libraries, each used as its own documentation does, with its defaults but for the ttl. One shape for all:
//   open(url) -> { take(key) -> { isHeld(), onLost(listener), release(), fence }, close() }
// `isHeld` and `onLost` are null where a library has no such thing.
import { createRequire } from "node:module";
import { join } from "node:path";
import { connect } from "solehold";

export const TTL_MS = 1_500;

/** The packages that only benchmarks need are in the folder of the benchmarks. */
const require = createRequire(join(import.meta.dirname, "../bench/package.json"));
const load = (name) => import(require.resolve(name));
const versionOf = (name) => {
  const main = require.resolve(name);
  const folder = main.slice(0, main.lastIndexOf(`node_modules/${name}/`) + `node_modules/${name}/`.length);
  return require(join(folder, "package.json")).version;
};

/** A peer's error events are its user's to handle: an ioredis client without a listener prints each of them. */
async function redisClient(url) {
  const { Redis } = await load("ioredis");
  const client = new Redis(url);
  client.on("error", () => undefined);
  return client;
}

const redlock = {
  name: "redlock",
  version: () => versionOf("redlock"),
  settings: "`redlock.lock(key, 1500)`; it does not extend by itself",
  async open(url) {
    const client = await redisClient(url);
    const { default: Redlock } = await load("redlock");
    const redlock = new Redlock([client]);
    redlock.on("clientError", () => undefined);
    return {
      async take(key) {
        const lock = await redlock.lock(`redlock:${key}`, TTL_MS);
        return {
          isHeld: () => lock.expiration > Date.now(),
          onLost: null,
          release: () => lock.unlock(),
          fence: null,
        };
      },
      close: () => client.disconnect(),
    };
  },
};

const redisSemaphore = {
  name: "redis-semaphore",
  version: () => versionOf("redis-semaphore"),
  settings:
    "`new Mutex(client, key, { lockTimeout: 1500 })`, refreshed every 1200 ms; `onLockLost` as it is by default",
  async open(url) {
    const client = await redisClient(url);
    const { Mutex } = await load("redis-semaphore");
    return {
      async take(key) {
        const mutex = new Mutex(client, key, { lockTimeout: TTL_MS });
        await mutex.acquire();
        return {
          isHeld: () => mutex.isAcquired,
          onLost: null,
          release: () => mutex.release(),
          fence: null,
        };
      },
      close: () => client.disconnect(),
    };
  },
};

const verrou = {
  name: "@verrou/core",
  version: () => versionOf("@verrou/core"),
  settings: "`verrou.createLock(key, 1500)`; it does not extend by itself",
  async open(url) {
    const client = await redisClient(url);
    const { Verrou } = await load("@verrou/core");
    const { redisStore } = await load("@verrou/core/drivers/redis");
    const stores = { redis: { driver: redisStore({ connection: client }) } };
    const locks = new Verrou({ default: "redis", stores });
    return {
      async take(key) {
        const lock = locks.createLock(`verrou:${key}`, TTL_MS);
        if (!(await lock.acquire())) throw new Error("not acquired");
        return {
          isHeld: () => !lock.isExpired(),
          onLost: null,
          release: () => lock.release(),
          fence: null,
        };
      },
      close: () => client.disconnect(),
    };
  },
};

const redlockUniversal = {
  name: "redlock-universal",
  version: () => versionOf("redlock-universal"),
  settings: "`lock.using(work)` with `ttl: 1500`, which extends by itself and gives a signal",
  async open(url) {
    const client = await redisClient(url);
    const { createLock, IoredisAdapter } = await load("redlock-universal");
    const adapter = new IoredisAdapter(client);
    return {
      take: (key) =>
        new Promise((resolve, reject) => {
          const lock = createLock({ adapter, key: `universal:${key}`, ttl: TTL_MS });
          const done = Promise.withResolvers?.() ?? deferred();
          const used = lock.using(async (signal) => {
            resolve({
              isHeld: () => !signal.aborted,
              onLost: (listener) => signal.addEventListener("abort", listener, { once: true }),
              release: () => {
                done.resolve();
                return used;
              },
              fence: null,
            });
            await done.promise;
          });
          used.catch(reject);
        }),
      close: () => client.disconnect(),
    };
  },
};

function deferred() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

const solehold = {
  name: "solehold",
  version: () => "this commit",
  settings: "`leases.acquire(key, { ttl: 1500 })`",
  async open(url) {
    const leases = await connect(url);
    return {
      async take(key) {
        const lease = await leases.acquire(key, { ttl: TTL_MS });
        return {
          isHeld: () => lease.isHeld(),
          onLost: (listener) => lease.signal.addEventListener("abort", listener, { once: true }),
          release: () => lease.release(),
          fence: lease.fence,
        };
      },
      close: () => leases.close(),
    };
  },
};

export const SUBJECTS = [redlock, redisSemaphore, verrou, redlockUniversal, solehold];
