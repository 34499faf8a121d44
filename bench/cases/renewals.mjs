// Renewals in bulk: a process that holds very many leases renews all of them, on the embedded store, on Redis and over a
// stream to a server; through the store alone (conditional writes) and through the executor (decisions and checks too).
import { connect, StoreExecutor } from "solehold";
import { openEmbeddedStore } from "solehold/embedded";
import { encodeRecord } from "solehold/internal";
import { openRedisStore } from "solehold/redis";
import { startRedis } from "../../scripts/engines/index.mjs";
import { longestTurnMs } from "../lib/event-loop.mjs";
import { applyAll, heldRecord, renewedRecord } from "../lib/records.mjs";
import { redisClient } from "../lib/redis-locks.mjs";
import { withResources } from "../lib/resources.mjs";
import { figure } from "../lib/rows.mjs";
import { startServer } from "../lib/server-process.mjs";
import { openSqlite } from "../lib/sqlite-floor.mjs";
import { median, medianRatio } from "../lib/statistics.mjs";

export const about = "Renewals: all leases of a process that holds very many";

const LEASES = 100_000;
/** Commands that a process starts in one turn of its event loop. */
const SLICE = 500;
const TTL_MS = 600_000;
/** So many commands at once take a while on a busy machine; none of them shall be given up. */
const PATIENCE_MS = 120_000;
const EMBEDDED_BAR = 120_000;
const TURN_BAR_MS = 20;
/** Tells the keys of one measurement from those of another. */
let calls = 0;

export function run({ quick, pace, say }) {
  return withResources(async (resources) => {
    const rounds = quick ? 2 : Math.min(pace.rounds, 7);
    const [managed, onRedisCount] = quick ? [10_000, 30_000] : [LEASES, LEASES];
    const redis = resources.add(await startRedis({ flags: ["--appendonly", "no"] }), (engine) =>
      engine.stop(),
    );
    const embedded = resources.add(await openEmbeddedStore({ folder: resources.folder() }), (each) =>
      each.close(),
    );
    const onRedis = resources.add(await openRedisStore({ url: redis.url }), (each) => each.close());
    const database = resources.add(await openSqlite(resources.folder()), (each) => each.close());
    const client = resources.add(redisClient(redis.url), (each) => each.disconnect());
    const server = resources.add(await startServer({ dataDir: resources.folder() }), (each) => each.stop());
    const { executor: remote } = resources.add(await connect(server.url), (each) => each.close());
    const groups = [
      await measure({ title: "embedded", say, rounds }, [
        { name: "SQLite update, one transaction", role: "floor", ...(await sqliteLoop(database)) },
        { name: "solehold", role: "ours", ...(await storeRenewals(embedded)) },
        {
          name: "solehold, through the executor",
          role: "other",
          ...(await executorRenewals(embedded, managed)),
        },
      ]),
      await measure({ title: "redis", say, rounds }, [
        { name: "raw script each, pipelined", role: "floor", ...(await redisLoop(client, onRedisCount)) },
        { name: "solehold", role: "ours", ...(await storeRenewals(onRedis, onRedisCount)) },
        {
          name: "solehold, through the executor",
          role: "other",
          ...(await executorRenewals(onRedis, managed)),
        },
      ]),
      await measure({ title: "server", say, rounds }, [
        {
          name: "no network, through the executor",
          role: "floor",
          ...(await executorRenewals(embedded, managed)),
        },
        { name: "solehold, one stream", role: "ours", ...(await commandRenewals(remote, managed)) },
      ]),
    ];
    return {
      conditions: [
        `${LEASES.toLocaleString("en-US")} leases (on Redis ${onRedisCount.toLocaleString("en-US")}, through the executor ${managed.toLocaleString("en-US")}); embedded: every write synced; Redis ${redis.version}, no persistence`,
        "server: embedded store, synced and audited, one connection; floor of embedded: a blocking loop of SQLite's upserts over the same records, encoded as text, in one transaction",
      ],
      doesMore:
        "compares a version for each, writes full records on Redis too, and gives the event loop its turns",
      groups,
      rows: groups.flatMap(rowsOf),
    };
  });
}

async function measure({ title, say, rounds }, contenders) {
  const results = contenders.map(() => []);
  for (let round = 0; round <= rounds; round += 1) {
    for (const [index, { name, prepare, renewAll, count }] of contenders.entries()) {
      if (round === 0) say(`${title}: ${name}`);
      prepare?.();
      const cpu = process.cpuUsage();
      const start = performance.now();
      await renewAll();
      const ms = performance.now() - start;
      const { user, system } = process.cpuUsage(cpu);
      // The first is the warm-up.
      if (round > 0) results[index].push({ perSecond: (count * 1_000) / ms, cpuUs: (user + system) / count });
    }
  }
  const of = (index, field) => results[index].map((each) => each[field]);
  const measured = [];
  for (const [index, { name, role, prepare, renewAll }] of contenders.entries()) {
    prepare?.();
    await new Promise((resolve) => setImmediate(resolve));
    measured.push({
      name,
      role,
      perSecond: median(of(index, "perSecond")),
      cpuUs: median(of(index, "cpuUs")),
      longestTurnMs: await longestTurnMs(renewAll),
      ratio: {
        perSecond: medianRatio(of(index, "perSecond"), of(0, "perSecond")),
        cpuUs: medianRatio(of(index, "cpuUs"), of(0, "cpuUs")),
      },
    });
  }
  return { title, unit: "renewals", contenders: measured };
}

/** All leases in store calls as large as the store takes. What to write was decided before. */
async function storeRenewals(store, count = LEASES) {
  let records = keptRecords(count);
  let writes = records.map((next) => ({ key: next.key, expected: null, next }));
  let versions = await applyAll(store, writes);
  const prepare = () => {
    records = records.map((record) => renewedRecord(record));
    writes = records.map((next, index) => ({ key: next.key, expected: versions[index], next }));
  };
  const renewAll = async () => {
    versions = await applyAll(store, writes);
  };
  return { prepare, renewAll, count };
}

function executorRenewals(store, count) {
  return commandRenewals(new StoreExecutor({ store }), count);
}

/** As the handles of a process do it: one command a lease, a slice of them in each turn. */
async function commandRenewals(executor, count) {
  calls += 1;
  const holder = `worker-${calls}`;
  const inSlices = async (command) => {
    const outcomes = [];
    for (let start = 0; start < count; start += SLICE) {
      for (let index = start; index < Math.min(count, start + SLICE); index += 1)
        outcomes.push(command(index));
      await new Promise((resolve) => setImmediate(resolve));
    }
    return await Promise.all(outcomes);
  };
  const keyOf = (index) => ({ tenant: "default", name: `${holder}/${index}` });
  const granted = await inSlices((index) =>
    executor.execute({
      op: "acquire",
      key: keyOf(index),
      holder,
      ttlMs: TTL_MS,
      purpose: "Operation",
      timeoutMs: PATIENCE_MS,
    }),
  );
  assertApplied(granted);
  const renewAll = async () => {
    const outcomes = await inSlices((index) =>
      executor.execute({
        op: "renew",
        key: keyOf(index),
        holder,
        token: granted[index].token,
        ttlMs: TTL_MS,
        timeoutMs: PATIENCE_MS,
      }),
    );
    assertApplied(outcomes);
  };
  return { renewAll, count };
}

function assertApplied(outcomes) {
  const failed = outcomes.find(({ kind }) => kind !== "applied");
  if (failed === undefined) return;
  throw new Error(
    `not applied: ${failed.kind === "refused" ? failed.decision.reason : failed.cause?.message}`,
  );
}

/** The records are encoded within, as the store does. */
async function sqliteLoop(database) {
  const records = keptRecords(LEASES);
  const keys = records.map(({ key }) => `${key.tenant}/${key.name}`);
  const write = database.prepare(
    "INSERT INTO records VALUES (?, 1, ?) ON CONFLICT DO UPDATE SET version = version + 1, value = excluded.value",
  );
  const renewAll = async () => {
    database.exec("BEGIN IMMEDIATE");
    for (const [index, key] of keys.entries()) write.run(key, encodeRecord(records[index]));
    database.exec("COMMIT");
  };
  return { renewAll, count: LEASES };
}

function keptRecords(count) {
  return Array.from({ length: count }, (_, index) => heldRecord(`kept/${index}`, { ttlMs: TTL_MS }));
}

/** A compare-and-expire script for each lease, a thousand in one pipeline. */
async function redisLoop(client, count) {
  const lua =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";
  client.defineCommand("renewLock", { numberOfKeys: 1, lua });
  const inPipelines = async (add) => {
    for (let start = 0; start < count; start += 1_000) {
      const pipeline = client.pipeline();
      for (let index = start; index < start + 1_000; index += 1) add(pipeline, `kept:${index}`);
      await pipeline.exec();
    }
  };
  await inPipelines((pipeline, key) => pipeline.set(key, "token", "PX", TTL_MS));
  const renewAll = () => inPipelines((pipeline, key) => pipeline.renewLock(key, "token", TTL_MS));
  return { renewAll, count };
}

function rowsOf({ title, contenders: [floor, ...ours] }) {
  return ours.flatMap(({ name, perSecond, ratio, longestTurnMs: turnMs }) => {
    const titled = `renewals: ${title}${name.replace("solehold", "")}`;
    const text = `>= ${EMBEDDED_BAR.toLocaleString("en-US")}`;
    const bar = title === "embedded" ? { bar: text, met: perSecond >= EMBEDDED_BAR } : {};
    return [
      figure(titled, perSecond, "renewals/s", { floor: floor.perSecond, ratio: ratio.perSecond, ...bar }),
      figure(`${titled}, longest turn of the event loop`, turnMs, "ms", {
        floor: floor.longestTurnMs,
        bar: `<= ${TURN_BAR_MS} ms`,
        met: turnMs <= TURN_BAR_MS,
      }),
    ];
  });
}
