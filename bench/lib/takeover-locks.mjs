// Locks that a process holds when it ends: `open(contender, url, ttlMs)` gives `lock(name)`, which resolves with the
// function that unlocks, and `stop()`, what the contender's program does when it is asked to stop.
import { connect } from "solehold";
import { redisClient, redisPeers } from "./redis-locks.mjs";

export async function open(contender, url, ttlMs) {
  if (contender === "solehold") {
    const leases = await connect(url);
    const lock = async (name) => {
      const lease = await leases.acquire(name, { ttl: ttlMs, wait: "1m", keepAlive: true });
      return () => lease.release();
    };
    return { lock, stop: () => leases.drain(), close: () => leases.close() };
  }
  const client = redisClient(url);
  const peer = redisPeers(client, ttlMs)[contender];
  let unlock = async () => undefined;
  const lock = async (name) => {
    // Some give up after a number of tries: they are asked again, as a program would.
    for (;;) {
      try {
        unlock = await peer(name);
        return unlock;
      } catch {
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  };
  return { lock, stop: () => unlock(), close: async () => client.disconnect() };
}
