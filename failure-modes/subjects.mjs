// The libraries, each used as its own documentation does, with its defaults but for the ttl. One shape for all:
//   open(url) -> { take(key) -> { isHeld(), onLost(listener), release(), fence } }
// `onLost` and `fence` are null where a library has no such thing; `isHeld` is then what its caller has to assume. Where an
// acquire is several calls, `take(key, beforeLastCall)` says when the last one is about to be answered.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { connect } from "solehold";

/** As short as the libraries take: etcd3 counts in seconds, etcd and proper-lockfile allow no less than two. */
export const TTL_MS = 2_000;

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
  backend: "redis",
  version: () => versionOf("redlock"),
  settings: `\`redlock.lock(key, ${TTL_MS})\`; it does not extend by itself`,
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
    };
  },
};

const redisSemaphore = {
  name: "redis-semaphore",
  backend: "redis",
  version: () => versionOf("redis-semaphore"),
  settings: `\`new Mutex(client, key, { lockTimeout: ${TTL_MS} })\`, refreshed every ${TTL_MS * 0.8} ms; \`onLockLost\` as it is by default`,
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
    };
  },
};

const verrou = {
  name: "@verrou/core",
  backend: "redis",
  version: () => versionOf("@verrou/core"),
  settings: `\`verrou.createLock(key, ${TTL_MS})\`; it does not extend by itself`,
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
    };
  },
};

const redlockUniversal = {
  name: "redlock-universal",
  backend: "redis",
  version: () => versionOf("redlock-universal"),
  settings: `\`lock.using(work)\` with \`ttl: ${TTL_MS}\`, which extends by itself and gives a signal`,
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

const etcd3 = {
  name: "etcd3",
  backend: "etcd",
  version: () => versionOf("etcd3"),
  settings: `\`client.lock(key).ttl(${TTL_MS / 1_000}).acquire()\`, kept alive by itself. Its \`Lock\` does not show the \`lost\` event of its lease`,
  async open(url) {
    const { Etcd3 } = await load("etcd3");
    const client = new Etcd3({ hosts: url });
    return {
      async take(key, beforeLastCall) {
        const lock = client.lock(key).ttl(TTL_MS / 1_000);
        const acquiring = lock.acquire();
        // With the etcd lease, which is its first call, the lock is asked for at once.
        lock.leaseId().then(beforeLastCall, () => undefined);
        await acquiring;
        return { isHeld: () => true, onLost: null, release: () => lock.release(), fence: null };
      },
    };
  },
};

const properLockfile = {
  name: "proper-lockfile",
  backend: "files",
  version: () => versionOf("proper-lockfile"),
  settings: `\`lockfile.lock(file, { stale: ${TTL_MS} })\`, updated every ${TTL_MS / 2} ms; asked by \`checkSync\`; \`onCompromised\` as it is by default`,
  async open(folder) {
    const { default: lockfile } = await load("proper-lockfile");
    // The first lock of a process gets a time that is rounded to the second, so two of them may look alike. Not the usual case.
    writeFileSync(join(folder, `first-of-${process.pid}`), "");
    await (await lockfile.lock(join(folder, `first-of-${process.pid}`)))();
    return {
      async take(key) {
        const file = join(folder, key);
        writeFileSync(file, "");
        const release = await lockfile.lock(file, { stale: TTL_MS });
        const isHeld = () => lockfile.checkSync(file, { stale: TTL_MS });
        return { isHeld, onLost: null, release, fence: null };
      },
    };
  },
};

const solehold = {
  name: "solehold",
  backend: "redis",
  version: () => "this commit",
  settings: `\`leases.acquire(key, { ttl: ${TTL_MS} })\`, on Redis`,
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
    };
  },
};

export const SUBJECTS = [redlock, redisSemaphore, verrou, redlockUniversal, etcd3, properLockfile, solehold];
