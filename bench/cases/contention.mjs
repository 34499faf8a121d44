// Contention: 64 clients want one key, give it back at once and want it again a moment later. What counts is how often it
// changes hands, and how much the store is asked for each time.
import { setMaxListeners } from "node:events";
import { connect } from "solehold";
import { startRedis } from "../../scripts/engines/index.mjs";
import { redisRequests, serverCommands } from "../lib/command-counts.mjs";
import { leaseLocks, listLocks, pause } from "../lib/handovers.mjs";
import { redisClient, redisPeers } from "../lib/redis-locks.mjs";
import { withResources } from "../lib/resources.mjs";
import { figure } from "../lib/rows.mjs";
import { startServer } from "../lib/server-process.mjs";
import { median, medianRatio } from "../lib/statistics.mjs";

export const about = "Contention: 64 clients on one key";

const CLIENTS = 64;
/** Without it, whoever gave the key back would be the first to take it again, and nothing would change hands. */
const PAUSE_MS = 2;
/** Until a crowd has formed: all of them come at the same instant, each with a connection that was never used. */
const SETTLE_MS = 500;

export function run({ quick, say }) {
  return withResources(async (resources) => {
    const [rounds, roundMs] = quick ? [2, 400] : [5, 3_000];
    const redis = resources.add(await startRedis({ flags: ["--appendonly", "no"] }), (each) => each.stop());
    const server = resources.add(await startServer({ dataDir: resources.folder() }), (each) => each.stop());
    const contenders = await openContenders(resources, { redis, server });
    const results = contenders.map(() => []);
    for (let round = 0; round <= rounds; round += 1) {
      for (const [index, contender] of contenders.entries()) {
        // The waits of peers cannot be aborted, and take seconds to end a round: for a look they have one fewer.
        if (round === 0 && quick && contender.role === "peer") continue;
        if (round < 2) say(`${contender.name}, ${round === 0 ? "warm-up" : "measured"}`);
        const result = await crowdRound(contender, roundMs, `key-${round}`);
        // The first round is the warm-up, beyond what does not count of every round.
        if (round > 0) results[index].push(result);
      }
    }
    const measured = contenders.map(({ name, role }, index) =>
      summaryOf({ name, role }, results[index], results[0]),
    );
    return {
      conditions: [
        `${CLIENTS} clients, each with a connection of its own (but "one process": one connection), that take the key, give it back at once and want it again ${PAUSE_MS} ms later`,
        `Redis ${redis.version} without persistence; the server synced and audited; peers with their defaults`,
        `the first ${SETTLE_MS} ms of a round do not count; a handover is a change of hands: getting the key again after oneself is none; requests: reads of Redis from its connections; lease commands of the server`,
      ],
      doesMore: "a fence and an expiry for each holder; the server keeps one line, first come, first served",
      chart: { groups: [barsOf(measured)] },
      rows: rowsOf(measured),
    };
  });
}

async function openContenders(resources, { redis, server }) {
  const client = () => resources.add(redisClient(redis.url), (each) => each.disconnect());
  const leasesOn = async (url) => leaseLocks(resources.add(await connect(url), (each) => each.close()));
  const crowdOf = (open) => Promise.all(Array.from({ length: CLIENTS }, open));
  const counter = client();
  const onRedis = () => redisRequests(counter);
  const shared = await leasesOn(redis.url);
  const peers = [];
  for (const name of Object.keys(redisPeers(counter))) {
    const locks = await crowdOf(async () => redisPeers(client())[name]);
    peers.push({ name, role: "peer", locks, requests: onRedis });
  }
  return [
    {
      name: "blocking list in Redis",
      role: "floor",
      locks: await crowdOf(async () => listLocks(client())),
      requests: onRedis,
    },
    {
      name: "solehold, Redis",
      role: "ours",
      locks: await crowdOf(() => leasesOn(redis.url)),
      requests: onRedis,
    },
    {
      name: "solehold, Redis, one process",
      role: "ours",
      locks: Array(CLIENTS).fill(shared),
      requests: onRedis,
    },
    {
      name: "solehold, server",
      role: "ours",
      locks: await crowdOf(() => leasesOn(server.url)),
      requests: () => serverCommands(server.url),
    },
    ...peers,
  ];
}

/** Who gets the key again after itself was handed nothing over. */
async function crowdRound({ locks, requests }, forMs, key) {
  const grants = locks.map(() => 0);
  let handovers = 0;
  let gaveUp = 0;
  let last = -1;
  const start = performance.now() + SETTLE_MS;
  const end = start + forMs;
  // Waits that can be aborted are aborted at the end; the others get the key once more, one after the other.
  const ending = new AbortController();
  setMaxListeners(0, ending.signal);
  const worker = async (lock, client) => {
    while (performance.now() < end) {
      try {
        const unlock = await lock(key, ending.signal);
        const now = performance.now();
        if (now >= start && now < end) {
          grants[client] += 1;
          if (last !== client) handovers += 1;
          last = client;
        }
        await unlock();
        await pause(PAUSE_MS);
      } catch {
        if (!ending.signal.aborted) gaveUp += 1;
      }
    }
  };
  const all = Promise.all(locks.map(worker));
  await pause(SETTLE_MS);
  const before = await requests();
  await pause(end - performance.now());
  const asked = (await requests()) - before - 1;
  ending.abort();
  await all;
  return {
    perSecond: (handovers * 1_000) / forMs,
    requestsEach: asked / Math.max(1, handovers),
    served: grants.filter((count) => count > 0).length,
    largestShare: (Math.max(...grants) * CLIENTS) / Math.max(1, sumOf(grants)),
    gaveUp,
  };
}

function sumOf(numbers) {
  return numbers.reduce((total, value) => total + value, 0);
}

function summaryOf(contender, rounds, floorRounds) {
  const all = (field, from = rounds) => from.map((round) => round[field]);
  return {
    ...contender,
    perSecond: median(all("perSecond")),
    requestsEach: median(all("requestsEach")),
    served: median(all("served")),
    largestShare: median(all("largestShare")),
    gaveUp: sumOf(all("gaveUp")),
    ratio: medianRatio(all("perSecond"), all("perSecond", floorRounds)),
  };
}

function rowsOf(measured) {
  const [floor, ...others] = measured;
  const rivals = others.filter(({ role }) => role === "peer");
  const of = (field) => ({
    floor: floor[field],
    peers: Object.fromEntries(rivals.map((peer) => [peer.name, peer[field]])),
  });
  return others
    .filter(({ role }) => role === "ours")
    .flatMap(({ name, perSecond, requestsEach, served, largestShare, ratio }) => {
      const title = `contention: ${name.replace("solehold, ", "")}`;
      return [
        figure(title, perSecond, "handovers/s", { ...of("perSecond"), ratio }),
        figure(`${title}, requests for each`, requestsEach, "requests", of("requestsEach")),
        figure(`${title}, clients that were served`, served, `of ${CLIENTS}`, of("served")),
        figure(`${title}, the busiest client`, largestShare, "x its share", of("largestShare")),
      ];
    });
}

function barsOf(measured) {
  const bars = measured.map(({ name, role, perSecond, requestsEach, served }) => ({
    label: name,
    role,
    value: perSecond,
    note: `${requestsEach.toFixed(1)} requests each, ${Math.round(served)} served`,
  }));
  return { title: `${CLIENTS} clients, one key`, unit: "handovers/s", bars };
}
