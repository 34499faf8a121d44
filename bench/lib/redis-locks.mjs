// Locks on Redis: the raw floor and the peers, each used as its own documentation does, with its defaults. All share one
// ioredis client, as ours has one connection for its calls.
import { Verrou } from "@verrou/core";
import { redisStore } from "@verrou/core/drivers/redis";
import { Redis } from "ioredis";
import { Mutex } from "redis-semaphore";
import Redlock from "redlock";
import { createLock, IoredisAdapter } from "redlock-universal";

const TTL_MS = 30_000;
const RELEASE =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

export function redisClient(url) {
  const client = new Redis(url);
  client.defineCommand("releaseLock", { numberOfKeys: 1, lua: RELEASE });
  return client;
}

/** SET NX PX, then compare and delete in a script: the least that a lock on Redis can do. */
export function rawPairs(client, names) {
  let token = 0;
  return async (worker, index) => {
    const key = `raw:${names(worker, index)}`;
    token += 1;
    const mine = String(token);
    if ((await client.set(key, mine, "PX", TTL_MS, "NX")) !== "OK") throw new Error("raw: not locked");
    if ((await client.releaseLock(key, mine)) !== 1) throw new Error("raw: not unlocked");
  };
}

/** Each peer as `lock(name)`, which resolves with the function that unlocks. */
export function redisPeers(client, ttlMs = TTL_MS) {
  const redlock = new Redlock([client]);
  const verrou = new Verrou({
    default: "redis",
    stores: { redis: { driver: redisStore({ connection: client }) } },
  });
  const adapter = new IoredisAdapter(client);
  return {
    redlock: async (name) => {
      const lock = await redlock.lock(`redlock:${name}`, ttlMs);
      return () => lock.unlock();
    },
    "redis-semaphore": async (name) => {
      const mutex = new Mutex(client, name, ttlMs === TTL_MS ? {} : { lockTimeout: ttlMs });
      await mutex.acquire();
      return () => mutex.release();
    },
    "@verrou/core": async (name) => {
      const lock = verrou.createLock(`verrou:${name}`, ttlMs);
      if (!(await lock.acquire())) throw new Error("@verrou/core: not locked");
      return () => lock.release();
    },
    "redlock-universal": async (name) => {
      const lock = createLock({ adapter, key: `universal:${name}`, ttl: ttlMs });
      const handle = await lock.acquire();
      return () => lock.release(handle);
    },
  };
}
