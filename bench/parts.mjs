// What a pair costs apart: `node bench/parts.mjs`. In processor time, so that other work on the machine counts little; what
// is waited for (the disk, the network, another thread that sleeps) is not in it.
import { Worker } from "node:worker_threads";
import { Redis } from "ioredis";
import { Leases, openStore, StoreExecutor } from "solehold";
import { encodeRecord } from "solehold/core";
import { openEmbeddedStore } from "solehold/embedded";
import { hash, rowDigest, rowMark } from "../packages/solehold/src/stores/sqlite/integrity.js";
import { startRedis } from "../scripts/engines/index.mjs";
import { runRound } from "./lib/compete.mjs";
import { callsPerSecond } from "./lib/measure.mjs";
import { leasePairs, warmNames } from "./lib/pairs.mjs";
import { heldRecord } from "./lib/records.mjs";
import { withResources } from "./lib/resources.mjs";
import { openSqlite } from "./lib/sqlite-floor.mjs";
import { median } from "./lib/statistics.mjs";
import { storePairs } from "./lib/store-pairs.mjs";

const IN_FLIGHT = 64;
const KEYS = 1_024;
const ROUNDS = 7;
const ROUND_MS = 300;

const print = (what, us) => console.log(`${what.padEnd(66)} ${us.toFixed(2).padStart(8)} us`);

/** Processor time of this process, all its threads, for each of the units of work that `round` says it did. */
async function cpuOf(round) {
  const results = [];
  for (let index = 0; index <= ROUNDS; index += 1) {
    const before = process.cpuUsage();
    const count = await round();
    const { user, system } = process.cpuUsage(before);
    if (index > 0) results.push((user + system) / count);
  }
  return median(results);
}

const pairs = (turn) => cpuOf(async () => (await runRound(turn, IN_FLIGHT, ROUND_MS, [])).latencies.length);

async function forAWhile(step) {
  let count = 0;
  for (const end = performance.now() + ROUND_MS; performance.now() < end; count += 1) await step();
  return count;
}

/** Answers at once, and makes no text of the records. */
function idleStore() {
  const records = new Map();
  let version = 0;
  const applied = ({ key, next }) => {
    version += 1;
    records.set(key.name, { kind: "found", record: next, version: String(version) });
    return { kind: "applied", version: String(version) };
  };
  return {
    name: "idle",
    capabilities: {
      durable: false,
      clock: "reply",
      clockGranularityMs: 1,
      clockSkewMs: 0,
      watch: false,
      conditionalDelete: true,
      maxBatch: 128,
      maxConcurrentCalls: 2,
      minBatch: 16,
    },
    read: async (keys) => ({
      storeTimeMs: Date.now(),
      records: keys.map(({ name }) => records.get(name) ?? { kind: "absent" }),
    }),
    apply: async (writes) => {
      await new Promise(setImmediate);
      return { storeTimeMs: Date.now(), results: writes.map(applied) };
    },
    close: async () => undefined,
  };
}

async function aboveTheStore() {
  const leases = new Leases({ executor: new StoreExecutor({ store: idleStore() }) });
  print("a pair above the store, with this harness", await pairs(leasePairs(leases, warmNames())));
  print("  of this the harness", await pairs(storePairs(idleStore(), warmNames())));
  const sample = Array.from({ length: KEYS }, (_, index) => heldRecord(`warm/${index}`));
  const encode = (index) => encodeRecord(sample[index % KEYS]);
  print("a record as text, two in a pair", 1_000_000 / callsPerSecond(encode));
}

async function onRedis(resources) {
  const redis = resources.add(await startRedis({ flags: ["--appendonly", "no"] }), (each) => each.stop());
  const admin = resources.add(new Redis(redis.url), (each) => each.disconnect());
  const store = resources.add(await openStore(redis.url), (each) => each.close());
  const turn = storePairs(store, warmNames());
  print("Redis: a pair through the store alone, client", await pairs(turn));
  await admin.config("RESETSTAT");
  const { latencies } = await runRound(turn, IN_FLIGHT, ROUNDS * ROUND_MS, []);
  const [, scriptUs] = /cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(await admin.info("commandstats"));
  print("Redis: a pair's share of its two scripts, server", Number(scriptUs) / latencies.length);
}

/** A message with so many writes to a thread that only answers. */
async function throughAThread(resources, count) {
  const answer = `const { parentPort } = require("node:worker_threads");
    parentPort.on("message", ({ id, args: [writes] }) =>
      parentPort.postMessage({ id, reply: { versions: new Float64Array(writes.length), current: new Map() } }));`;
  const thread = resources.add(new Worker(answer, { eval: true }), (each) => each.terminate());
  const text = encodeRecord(heldRecord("warm/1"));
  const writes = Array.from({ length: count }, (_, index) => ["default", `warm/${index}`, index, text]);
  const ask = () =>
    new Promise((resolve) => {
      thread.once("message", resolve);
      thread.postMessage({ id: 1, op: "apply", args: [writes, 1] });
    });
  return cpuOf(() => forAWhile(ask));
}

/** A transaction of so many updates; `digests` and `log` as the embedded store has them. Nothing is synced. */
async function ofACommit(resources, count, { digests = false, log = false } = {}) {
  const database = resources.add(await openSqlite(resources.folder()), (each) => each.close());
  database.exec(`PRAGMA synchronous = OFF;
    CREATE TABLE rows (tenant TEXT, name TEXT, version INTEGER, record TEXT, digest INTEGER, PRIMARY KEY (tenant, name)) WITHOUT ROWID;
    CREATE TABLE log (version INTEGER PRIMARY KEY, at_ms INTEGER, origin INTEGER, records INTEGER, sum INTEGER, keys TEXT, digest INTEGER)`);
  const insert = database.prepare("INSERT INTO rows VALUES ('default', ?, 0, '', 0)");
  for (let key = 0; key < KEYS; key += 1) insert.run(`warm/${key}`);
  const update = database.prepare(
    "UPDATE rows SET version = ?, record = ?, digest = ? WHERE tenant = ? AND name = ? AND version = ?",
  );
  const last = database.prepare("SELECT * FROM log ORDER BY version DESC LIMIT 1");
  const note = database.prepare("INSERT INTO log VALUES (?, 1, 1, 1, ?, ?, ?)");
  const text = encodeRecord(heldRecord("warm/1"));
  const versions = new Array(KEYS).fill(0);
  let version = 0;
  const commit = () => {
    database.exec("BEGIN IMMEDIATE");
    if (log) last.get();
    const keys = [];
    let sum = 0;
    for (let index = 0; index < count; index += 1) {
      version += 1;
      const key = version % KEYS;
      const name = `warm/${key}`;
      const mark = digests ? rowMark("default", name, version) : 0;
      if (digests) sum += mark - rowMark("default", name, versions[key]);
      update.run(version, text, digests ? rowDigest(mark, text) : 0, "default", name, versions[key]);
      versions[key] = version;
      keys.push(`default/${name}`);
    }
    if (log) note.run(version, sum, keys.join("\n"), hash(keys.join("\n")));
    database.exec("COMMIT");
  };
  return cpuOf(() => forAWhile(commit));
}

async function embedded(resources) {
  const store = resources.add(await openEmbeddedStore({ folder: resources.folder() }), (each) =>
    each.close(),
  );
  print(
    "embedded: a pair through the store alone, both threads",
    await pairs(storePairs(store, warmNames())),
  );
  for (const count of [1, IN_FLIGHT]) {
    const of = `of ${count} writes`;
    print(`embedded: to a thread and back, a message ${of}`, await throughAThread(resources, count));
    print(`embedded: a commit ${of}, rows alone, not synced`, await ofACommit(resources, count));
    print("  with digests and sum", await ofACommit(resources, count, { digests: true }));
    print("  with the row of the commit", await ofACommit(resources, count, { log: true }));
    print("  with both", await ofACommit(resources, count, { digests: true, log: true }));
  }
}

await withResources(async (resources) => {
  await aboveTheStore();
  await onRedis(resources);
  await embedded(resources);
});
