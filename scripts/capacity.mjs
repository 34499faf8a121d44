// node scripts/capacity.mjs [--write] [ENGINE...]: measures on each engine what a lease costs in bytes and in processor time,
// and says by a small model what 10 million leases of 1,000 clients would cost. Processor time, because other programs on the
// machine hardly change it; how fast it goes on a quiet one is `npm run bench`. --write puts the rows into
// artifacts/capacity.json and the tables into docs/capacity.md: engines that were not measured now keep their rows, if these
// were measured on the same machine and version of Node.js.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { connect, openStore } from "solehold";
import { encodeRecord } from "solehold/internal";
import { heldRecord } from "../bench/lib/records.mjs";
import { ENGINES } from "../soak/engines.mjs";
import { tablesOf, withTables } from "./capacity/page.mjs";

/** The clients of stores are packages of the library. */
const clientOf = createRequire(join(import.meta.dirname, "../packages/solehold/package.json"));
const PAGE = join(import.meta.dirname, "../docs/capacity.md");
const JSON_FILE = join(import.meta.dirname, "../artifacts/capacity.json");
const [LEASES, FEW_LEASES, ROUNDS, SLICE] = [5_000, 1_000, 3, 500];
/** Where a lease is a request or a file of its own, fewer are enough. */
const FEW = new Set(["file", "s3", "dynamodb"]);
const TTL_MS = 600_000;
const CALL_LIMIT_MS = 120_000;
const TICKS_PER_SECOND = 100;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");

/** A record as text, with its key: what is stored where the engine has no count of its own, and what travels. */
const RECORD_BYTES =
  Buffer.byteLength(encodeRecord(heldRecord("capacity/job-1234"))) + "capacity/job-1234".length;

const sizeOf = (path) =>
  statSync(path).isDirectory()
    ? readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
    : statSync(path).blocks * 512;
const folderBytes = async (url) => sizeOf(new URL(url.replace(/^\w+:/, "file:")).pathname);

/** How many bytes the engine says that it holds. @type {Readonly<Record<string, (url: string) => Promise<number>>>} */
const STORED = {
  embedded: folderBytes,
  file: folderBytes,
  redis: async (url) => {
    const { Redis } = clientOf("ioredis");
    const client = new Redis(url);
    const [, bytes] = /used_memory_dataset:(\d+)/.exec(await client.info("memory"));
    client.disconnect();
    return Number(bytes);
  },
  postgres: async (url) => {
    const { Client } = clientOf("pg");
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query("vacuum full");
    const { rows } = await client.query(
      "select sum(pg_total_relation_size(relid))::float8 as bytes from pg_stat_user_tables",
    );
    await client.end();
    return rows[0].bytes ?? 0;
  },
  mariadb: async (url) => {
    const { createConnection } = clientOf("mysql2/promise");
    const client = await createConnection(url.replace("mariadb:", "mysql:"));
    const [tables] = await client.query(
      "select table_name as name from information_schema.tables where table_schema = database()",
    );
    for (const { name } of tables) await client.query(`optimize table \`${name}\``);
    const [[{ bytes }]] = await client.query(
      "select cast(sum(data_length + index_length) as double) as bytes from information_schema.tables where table_schema = database()",
    );
    await client.end();
    return bytes ?? 0;
  },
  etcd: async (url) => {
    const [, host] = /^etcd:\/\/([^,/]+)/.exec(url);
    const answer = await fetch(`http://${host}/v3/maintenance/status`, { method: "POST", body: "{}" });
    return Number((await answer.json()).dbSizeInUse);
  },
};

/** As the handles of a process do it: one command a lease, a slice of them in each turn. */
async function inSlices(count, command) {
  const outcomes = [];
  for (let start = 0; start < count; start += SLICE) {
    for (let index = start; index < Math.min(count, start + SLICE); index += 1) outcomes.push(command(index));
    await new Promise(setImmediate);
  }
  const settled = await Promise.all(outcomes);
  const failed = settled.find(({ kind }) => kind !== "applied");
  if (failed !== undefined)
    throw new Error(`not applied: ${JSON.stringify(failed.decision ?? failed.cause?.message)}`);
  return settled;
}

/** Processor time of these processes and all that they started: what has ended is in the account of its parent. */
function cpuSeconds(pids) {
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const stats = all.flatMap((pid) => {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
      const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
      return [{ pid: Number(pid), parent: Number(fields[1]), ticks }];
    } catch {
      return []; // It has ended since.
    }
  });
  const family = new Set(pids);
  for (let size = -1; size !== family.size; ) {
    size = family.size;
    for (const { pid, parent } of stats) if (family.has(parent)) family.add(pid);
  }
  return stats.reduce((sum, { pid, ticks }) => sum + (family.has(pid) ? ticks : 0), 0) / TICKS_PER_SECOND;
}

async function measure(name) {
  const [load] = loadavg();
  const ground = await ENGINES[name]();
  Object.assign(process.env, ground.env);
  const { executor, ...leases } = await opened(ground.url);
  try {
    const count = FEW.has(name) ? FEW_LEASES : LEASES;
    const stored = STORED[name] === undefined ? null : await STORED[name](ground.url);
    const common = { holder: "capacity", ttlMs: TTL_MS, timeoutMs: CALL_LIMIT_MS };
    const key = (index) => ({ tenant: "default", name: `capacity/job-${index}` });
    const grants = await inSlices(count, (index) =>
      executor.execute({ op: "acquire", key: key(index), purpose: "Operation", ...common }),
    );
    // Before the renewals: what an engine keeps of its history is not what a lease costs.
    const bytes = stored === null ? null : ((await STORED[name](ground.url)) - stored) / count;
    const [cpu, engineS] = [process.cpuUsage(), cpuSeconds(ground.pids)];
    for (let round = 0; round < ROUNDS; round += 1)
      await inSlices(count, (index) =>
        executor.execute({ op: "renew", key: key(index), token: grants[index].token, ...common }),
      );
    const { user, system } = process.cpuUsage(cpu);
    const renewals = count * ROUNDS;
    return {
      name,
      version: ground.version,
      bytes,
      batch: leases.maxBatch,
      clientUs: (user + system) / renewals,
      engineUs: ground.pids.length === 0 ? null : ((cpuSeconds(ground.pids) - engineS) * 1e6) / renewals,
      measuredOn: new Date().toISOString().slice(0, 10),
      load,
    };
  } finally {
    await leases.close();
    await ground.stop();
  }
}

async function opened(url) {
  const leases = await connect(url);
  const store = url.startsWith("http") ? null : await openStore(url);
  const maxBatch = store?.capabilities.maxBatch ?? null;
  await store?.close();
  return { executor: leases.executor, maxBatch, close: () => leases.close() };
}

/** Memory of one held lease in its process: handle, token, place in the renewal schedule. */
async function handleBytes(count = 20_000) {
  const leases = await connect("memory:");
  const held = [];
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < count; index += 1) held.push(leases.acquire(`held/${index}`, { ttl: TTL_MS }));
  const handles = await Promise.all(held);
  collect();
  const withRecords = process.memoryUsage().heapUsed - before;
  // The store lies in the same heap here: its part is measured by what is left when the handles are gone.
  for (const handle of handles) handle.abandon();
  held.length = 0;
  handles.length = 0;
  collect();
  const records = process.memoryUsage().heapUsed - before;
  await leases.close();
  return (withRecords - records) / count;
}

/** The rows of engines that were not measured now, as long as they can stand beside the others. */
function withKeptRows(capacity) {
  const kept = existsSync(JSON_FILE) ? JSON.parse(readFileSync(JSON_FILE, "utf8")) : { rows: [] };
  const isSame = kept.machine === capacity.machine && kept.node === capacity.node;
  const all = new Map([...(isSame ? kept.rows : []), ...capacity.rows].map((row) => [row.name, row]));
  return { ...capacity, rows: Object.keys(ENGINES).flatMap((name) => all.get(name) ?? []) };
}

const args = process.argv.slice(2);
const names = args.filter((arg) => !arg.startsWith("--"));
const unknown = names.find((name) => !(name in ENGINES));
if (unknown !== undefined)
  throw new RangeError(`no engine is called '${unknown}': use some of ${Object.keys(ENGINES).join(", ")}`);
const measured = {
  machine: `${cpus().length} x ${cpus()[0].model}`,
  node: process.version,
  recordBytes: RECORD_BYTES,
  handleBytes: await handleBytes(),
  rows: [],
};
for (const name of names.length > 0 ? names : Object.keys(ENGINES)) {
  const startedMs = performance.now();
  try {
    measured.rows.push(await measure(name));
    console.error(`capacity: ${name}, ${Math.round((performance.now() - startedMs) / 1_000)} s`);
  } catch (error) {
    console.error(`capacity: ${name} could not be measured: ${error.message}`);
    process.exitCode = 1;
  }
}
if (args.includes("--write")) {
  const capacity = withKeptRows(measured);
  writeFileSync(JSON_FILE, `${JSON.stringify(capacity, null, 2)}\n`);
  writeFileSync(PAGE, withTables(readFileSync(PAGE, "utf8"), capacity));
} else console.log(tablesOf(measured));
