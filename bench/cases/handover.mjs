// Handover: from the release to the next holder, between two clients that only the store connects; and what twenty
// clients that wait for one lease cost the store.
import pg from "pg";
import { connect } from "solehold";
import { startEtcd, startPostgres, startRedis } from "../../scripts/engines/index.mjs";
import { postgresTransactions, redisRequests, serverCommands } from "../lib/command-counts.mjs";
import { runRound } from "../lib/compete.mjs";
import { EtcdClient, lockServiceLocks } from "../lib/etcd-locks.mjs";
import {
  advisoryLocks,
  handoverTimes,
  leaseLocks,
  listLocks,
  notifiedLocks,
  pause,
} from "../lib/handovers.mjs";
import { lockPairs, warmNames } from "../lib/pairs.mjs";
import { knexOn, rawPool, verrouOnKnex } from "../lib/postgres-locks.mjs";
import { redisClient, redisPeers } from "../lib/redis-locks.mjs";
import { withResources } from "../lib/resources.mjs";
import { figure } from "../lib/rows.mjs";
import { startServer } from "../lib/server-process.mjs";
import { median, percentile } from "../lib/statistics.mjs";

export const about = "Handover: from a release to the next holder";

const BAR_MS = 6;
const WAITERS = 20;
const COMPILING = { inFlight: 64, ms: 1_000 };
/** Handovers in quick succession before any is measured: how many at once, and for how long. */
const WARMING = { each: 5, ms: 600, settleMs: 2 };
const REDIS_PEERS = ["redlock", "redis-semaphore", "@verrou/core", "redlock-universal"];

export function run({ quick, say }) {
  return withResources(async (resources) => {
    // Waiters of ours look by themselves about every two seconds: a shorter wait would see none of it.
    const counts = quick
      ? { batches: 3, each: 5, peers: 4, waitMs: 2_000 }
      : { batches: 10, each: 20, peers: 50, waitMs: 10_000 };
    const places = await openPlaces(resources);
    const groups = [];
    for (const place of [places.redis, places.postgres, places.server, places.embedded]) {
      groups.push(await measurePlace(place, counts, say));
    }
    say(`${WAITERS} waiters`);
    const crowds = [];
    for (const place of [places.redis, places.postgres, places.server]) {
      crowds.push(...(await crowdRows(place, counts.waitMs)));
    }
    return {
      conditions: [
        "two clients with connections of their own; the time runs from the call of release to the return of the other's acquire",
        `before anything is measured every contender (but peers that sleep between attempts) hands over for ${WARMING.ms / 1_000} s in quick succession; the handovers that are measured come far apart`,
        `server and PostgreSQL: ours, and on PostgreSQL the floor, first serve ${COMPILING.inFlight} at once for ${COMPILING.ms / 1_000} s, so that code is compiled`,
        "no persistence in Redis, synced writes in PostgreSQL, in the server and in the embedded store; peers with their defaults",
        `requests of ${WAITERS} waiters: clients of their own that wait ${counts.waitMs / 1_000} s for a lease that is held, counted by the server`,
      ],
      doesMore: "the waiter is granted a fenced lease that expires",
      groups: [],
      chart: { groups: groups.map(barsOf) },
      rows: [...groups.map(rowOfPlace), ...crowds],
    };
  });
}

/** Everything is opened twice: once for the holder and once for the waiter. */
async function openPlaces(resources) {
  const redis = resources.add(await startRedis({ flags: ["--appendonly", "no"] }), (each) => each.stop());
  const postgres = resources.add(await startPostgres(), (each) => each.stop());
  const etcd = resources.add(await startEtcd({ members: 1 }), (each) => each.stop());
  const server = resources.add(await startServer({ dataDir: resources.folder() }), (each) => each.stop());
  const folder = resources.folder();
  const leasesOn = async (url) => leaseLocks(resources.add(await connect(url), (each) => each.close()));
  const client = () => resources.add(redisClient(redis.url), (each) => each.disconnect());
  const session = async () => {
    const connection = new pg.Client({ connectionString: postgres.url });
    await connection.connect();
    return resources.add(connection, (each) => each.end());
  };
  const onEtcd = async () => {
    const connection = resources.add(new EtcdClient(etcd.url), (each) => each.close());
    await connection.openSession();
    return lockServiceLocks(connection);
  };
  const verrou = async () => verrouOnKnex(resources.add(knexOn(postgres.url, 6), (each) => each.destroy()));
  const twice = async (open) => [await open(), await open()];
  const peer = (name) => twice(async () => redisPeers(client())[name]);
  const counter = client();
  const statistics = resources.add(await rawPool(postgres.url, 1), (each) => each.end());

  const serverLocks = await twice(() => leasesOn(server.url));
  const postgresLocks = await twice(() => leasesOn(postgres.url));
  const postgresFloor = await twice(() => notifiedLocks(session));

  const redisContenders = {
    "blocking list": { role: "floor", pair: await twice(async () => listLocks(client())) },
    solehold: { role: "ours", pair: await twice(() => leasesOn(redis.url)) },
  };
  for (const name of REDIS_PEERS) redisContenders[name] = { role: "peer", pair: await peer(name) };
  return {
    redis: {
      title: "redis",
      contenders: redisContenders,
      requests: () => redisRequests(counter),
      open: (name) => (name === "solehold" ? leasesOn(redis.url) : redisPeers(client())[name]),
      crowd: ["solehold", ...REDIS_PEERS],
    },
    postgres: {
      title: "postgres",
      contenders: {
        "synced claim and NOTIFY": {
          role: "floor",
          pair: postgresFloor,
          compile: () => compiled(postgresFloor),
        },
        "advisory lock": { role: "other", pair: await twice(async () => advisoryLocks(await session())) },
        solehold: { role: "ours", pair: postgresLocks, compile: () => compiled(postgresLocks) },
        "@verrou/core (knex)": { role: "peer", pair: await twice(verrou) },
      },
      requests: () => postgresTransactions(statistics),
      open: (name) => (name === "solehold" ? leasesOn(postgres.url) : verrou()),
      crowd: ["solehold", "@verrou/core (knex)"],
    },
    server: {
      title: "server",
      contenders: {
        "blocking list in Redis": { role: "floor", pair: redisContenders["blocking list"].pair },
        solehold: { role: "ours", pair: serverLocks, compile: () => compiled(serverLocks) },
        // A watch of etcd 3.4 may need 100 ms until it is in step: who released sooner would measure that.
        "etcd lock service": { role: "peer", pair: await twice(onEtcd), settleMs: 150 },
      },
      requests: () => serverCommands(server.url),
      open: () => leasesOn(server.url),
      crowd: ["solehold"],
    },
    embedded: {
      title: "embedded",
      contenders: {
        "blocking list in Redis": { role: "floor", pair: redisContenders["blocking list"].pair },
        solehold: { role: "ours", pair: await twice(() => leasesOn(`embedded:${folder}`)) },
      },
    },
  };
}

/**
 * Handovers come far apart, so that the code of clients (and of a server) would be measured before it is compiled. It is
 * the same code that serves many at once, which compiles it within seconds.
 */
async function compiled(locks) {
  for (const [index, lock] of locks.entries()) {
    const turn = lockPairs(lock, warmNames(`compile/${index}`));
    await runRound(turn, COMPILING.inFlight, COMPILING.ms, []);
  }
}

/** Measured handovers come far apart: without this, code would be measured before it is compiled. */
async function warm({ pair: [holder, waiter], settleMs = WARMING.settleMs }, name) {
  const end = performance.now() + WARMING.ms;
  for (let batch = 0; performance.now() < end; batch += 1) {
    await handoverTimes({ holder, waiter, count: WARMING.each, name: `${name}/warm-${batch}`, settleMs });
  }
}

/** Floor, ours and quick peers take turns; peers that sleep between attempts would only prolong it, and follow. */
async function measurePlace({ title, contenders }, counts, say) {
  const times = new Map(Object.keys(contenders).map((name) => [name, []]));
  const isSlow = (name) => REDIS_PEERS.includes(name) || name.startsWith("@verrou");
  const names = Object.keys(contenders);
  const run = async (name, count, batch) => {
    const { pair, settleMs } = contenders[name];
    const [holder, waiter] = pair;
    const label = `${title}/${name}/${batch}`;
    times.get(name).push(...(await handoverTimes({ holder, waiter, count, name: label, settleMs })));
  };
  say(title);
  for (const name of names) {
    await contenders[name].compile?.();
    await run(name, 2, "warm-up");
    if (!isSlow(name)) await warm(contenders[name], `${title}/${name}`);
  }
  for (const list of times.values()) list.length = 0;
  for (let batch = 0; batch < counts.batches; batch += 1) {
    for (const name of names.filter((each) => !isSlow(each))) await run(name, counts.each, batch);
  }
  await Promise.all(names.filter(isSlow).map((name) => run(name, counts.peers, "slow")));
  return {
    title,
    contenders: names.map((name) => ({
      name,
      role: contenders[name].role,
      p50Ms: median(times.get(name)),
      p99Ms: percentile(times.get(name), 0.99),
    })),
  };
}

async function crowdRows(place, waitMs) {
  const rates = {};
  for (const name of place.crowd) {
    const key = `crowd/${name}`;
    const unlock = await (await place.open(name))(key);
    const clients = await Promise.all(Array.from({ length: WAITERS }, () => place.open(name)));
    let gaveUp = 0;
    const waiting = clients.map((lock) =>
      lock(key).then(
        (next) => next(),
        () => {
          gaveUp += 1;
        },
      ),
    );
    await pause(waitMs / 4);
    const before = await place.requests();
    const start = performance.now();
    await pause(waitMs);
    const rate = Math.max(0, (((await place.requests()) - before - 1) * 1_000) / (performance.now() - start));
    rates[gaveUp === 0 ? name : `${name} (${gaveUp} gave up)`] = rate;
    await unlock();
    await Promise.all(waiting);
  }
  const { solehold, ...peers } = rates;
  return [figure(`handover: ${place.title}, ${WAITERS} waiters`, solehold, "requests/s", { peers })];
}

function rowOfPlace({ title, contenders }) {
  const floor = contenders.find(({ role }) => role === "floor");
  const ours = contenders.find(({ role }) => role === "ours");
  const peers = Object.fromEntries(
    contenders.filter(({ role }) => role === "peer").map(({ name, p50Ms }) => [name, p50Ms]),
  );
  const judged = title === "embedded" ? {} : { bar: `<= ${BAR_MS} ms`, met: ours.p50Ms <= BAR_MS };
  return figure(`handover: ${title}`, ours.p50Ms, "ms", {
    floor: floor.p50Ms,
    peers,
    p99Ms: ours.p99Ms,
    ...judged,
  });
}

function barsOf({ title, contenders }) {
  const bars = contenders.map(({ name, role, p50Ms }) => ({ label: name, role, value: p50Ms }));
  return { title, unit: "ms, median", bars };
}
