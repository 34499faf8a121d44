// Redis: acquire + release of a key, ours against the least that a lock on Redis can do and against other libraries.
import { connect, openStore } from "solehold";
import { startRedis } from "../../scripts/engines/index.mjs";
import { compete } from "../lib/compete.mjs";
import { LEAST, leastPairs } from "../lib/least-pairs.mjs";
import { coldNames, DOES_MORE, leasePairs, lockPairs, waitingPairs, warmNames } from "../lib/pairs.mjs";
import { rawPairs, redisClient, redisPeers } from "../lib/redis-locks.mjs";
import { withResources } from "../lib/resources.mjs";
import { aheadOfPeers, atLeast, atMost, rowOf } from "../lib/rows.mjs";
import { storePairs } from "../lib/store-pairs.mjs";

export const about = "Redis: acquire + release of a key";

const THROUGHPUT = { 64: 1.2, 256: 1.2 };

export function run({ pace, say }) {
  return withResources(async (resources) => {
    const redis = await startRedis({ flags: ["--appendonly", "no"] });
    resources.add(redis, (engine) => engine.stop());
    const client = resources.add(redisClient(redis.url), (each) => each.disconnect());
    const leases = resources.add(await connect(redis.url), (each) => each.close());
    const store = resources.add(await openStore(redis.url), (each) => each.close());
    const serverPids = redis.processes.map(({ pid }) => pid);
    const contenders = contendersOn({ client, leases, store });
    const groups = [];
    for (const inFlight of [1, 64, 256]) {
      const title = `${inFlight} in flight`;
      groups.push(await compete({ title, inFlight, contenders, pace, serverPids, say }));
    }
    return {
      conditions: [
        `Redis ${redis.version} on loopback, no persistence; one connection each; a lease or lock of 30 s (redis-semaphore: its default)`,
        "warm: 16 keys a worker, again and again; cold: every pair on a key that Redis and the process never saw",
      ],
      doesMore: DOES_MORE,
      groups,
      rows: groups.flatMap(rowsOf),
    };
  });
}

function contendersOn({ client, leases, store }) {
  const peers = Object.entries(redisPeers(client)).map(([name, lock]) => ({
    name,
    role: "peer",
    turn: lockPairs(lock, warmNames()),
  }));
  return [
    { name: "raw", role: "floor", turn: rawPairs(client, warmNames()) },
    { name: "solehold", role: "ours", turn: leasePairs(leases, warmNames()) },
    { name: "raw, cold", role: "floor", turn: rawPairs(client, coldNames()), against: "raw, cold" },
    { name: "solehold, cold", role: "ours", turn: leasePairs(leases, coldNames()), against: "raw, cold" },
    {
      name: "solehold, acquire that may wait",
      role: "other",
      turn: waitingPairs(leases, warmNames("patient")),
    },
    { name: LEAST, role: "limit", turn: leastPairs(store, warmNames("least")) },
    {
      name: "solehold, store alone",
      role: "other",
      turn: storePairs(store, warmNames("store")),
    },
    ...peers,
  ];
}

function rowsOf(group) {
  const { inFlight, title } = group;
  return ["warm", "cold"].flatMap((kind) => {
    const name = kind === "warm" ? "solehold" : "solehold, cold";
    const titled = `redis: ${title}, ${kind} keys`;
    if (inFlight === 1) return [rowOf(group, { title: titled, name, field: "p50Ms", bars: [atMost(1.2)] })];
    const throughput = [atLeast(THROUGHPUT[inFlight]), aheadOfPeers];
    return [
      rowOf(group, { title: titled, name, field: "perSecond", bars: throughput }),
      rowOf(group, { title: `${titled}, client CPU`, name, field: "cpuUs", bars: [atMost(0.4)] }),
    ];
  });
}
