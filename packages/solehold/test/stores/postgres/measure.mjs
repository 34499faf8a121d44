// The store against raw SQL on one server in one run: pairs of acquire and release, as writes only.
//   npm run build && node packages/solehold/test/stores/postgres/measure.mjs [--rounds 7] [--ms 1000]
// Raw is what a hand-written lock does: an upsert with a condition, then a delete, on 16 connections. The store's
// writes of one turn travel in one `apply` call, with a given number of calls in flight, as the manager sends them.
import { parseArgs } from "node:util";
import pg from "pg";
import { openPostgresStore } from "solehold/postgres";
import { startPostgres } from "../../../../../scripts/engines/index.mjs";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "7" }, ms: { type: "string", default: "1000" } },
});
const rounds = Number(values.rounds);
const durationMs = Number(values.ms);
const RAW_CONNECTIONS = 16;
const KEYS = 256;

const server = await startPostgres();
const pool = new pg.Pool({ connectionString: server.url, max: RAW_CONNECTIONS });
const store = await openPostgresStore({ url: server.url });
await pool.query(
  "create table raw_lock (name text primary key, holder text not null, expires_at timestamptz not null)",
);

async function rawPair(index) {
  const name = `job/${index}`;
  await pool.query({
    name: "acquire",
    text: `insert into raw_lock values ($1, $2, clock_timestamp() + interval '30 s') on conflict (name) do update
           set holder = excluded.holder, expires_at = excluded.expires_at where raw_lock.expires_at < clock_timestamp() returning name`,
    values: [name, "worker"],
  });
  await pool.query({
    name: "release",
    text: "delete from raw_lock where name = $1 and holder = $2",
    values: [name, "worker"],
  });
}

let nonce = 0;
function record(index, state) {
  nonce += 1;
  const now = 1_790_000_000_000 + nonce;
  return {
    key: { tenant: "default", name: `job/${index}` },
    holder: "worker",
    purpose: "Operation",
    tokenHash: "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
    term: 0n,
    generation: BigInt(nonce),
    ttlMs: 30_000,
    grantedAtMs: now,
    renewedAtMs: now,
    expiresAtMs: now + 30_000,
    endedAtMs: state === "held" ? null : now,
    state,
    renewals: 0,
    resumeRequired: false,
    breakAtMs: null,
    handoff: null,
    nonce: `nonce-${process.pid}-${nonce}`.padEnd(22, "x"),
    idempotency: null,
    note: "",
  };
}

/** Queues writes and sends what is there at the end of the turn, at most `callsInFlight` calls at once. */
function batching(callsInFlight) {
  let queue = [];
  let active = 0;
  const pump = () => {
    while (active < callsInFlight && queue.length > 0) {
      const batch = queue;
      queue = [];
      active += 1;
      store
        .apply(batch.map(({ write }) => write))
        .then(
          ({ results }) => batch.forEach(({ resolve }, index) => void resolve(results[index])),
          (error) => batch.forEach(({ reject }) => void reject(error)),
        )
        .finally(() => {
          active -= 1;
          pump();
        });
    }
  };
  return (write) =>
    new Promise((resolve, reject) => {
      queue.push({ write, resolve, reject });
      if (queue.length === 1) process.nextTick(pump);
    });
}

const alone = async (write) => (await store.apply([write])).results[0];

const versions = new Map();
function storePair(send) {
  return async (index) => {
    for (const state of ["held", "released"]) {
      const next = record(index, state);
      const result = await send({ key: next.key, expected: versions.get(index) ?? null, next });
      if (result.kind !== "applied") throw new Error(`not applied: ${JSON.stringify(result)}`);
      versions.set(index, result.version);
    }
  };
}

async function run(pair, inFlight) {
  const latencies = [];
  const cpu = process.cpuUsage();
  const start = performance.now();
  await Promise.all(
    Array.from({ length: inFlight }, async (_, index) => {
      while (performance.now() - start < durationMs) {
        const before = performance.now();
        await pair(index);
        latencies.push(performance.now() - before);
      }
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  const used = process.cpuUsage(cpu);
  latencies.sort((a, b) => a - b);
  return {
    perSecond: latencies.length / seconds,
    p50: latencies[latencies.length >> 1],
    cpu: (used.user + used.system) / latencies.length,
  };
}

const median = (numbers) => numbers.slice().sort((a, b) => a - b)[numbers.length >> 1];

/** Rounds alternate, so that both meet the same noise; the ratio is the median of the rounds' own ratios. */
async function compare(inFlight, contenders) {
  const results = new Map([["raw", []], ...Object.keys(contenders).map((name) => [name, []])]);
  for (let round = 0; round < rounds; round += 1) {
    results.get("raw").push(await run(rawPair, inFlight));
    for (const [name, pair] of Object.entries(contenders)) results.get(name).push(await run(pair, inFlight));
  }
  const raw = results.get("raw");
  for (const [name, runs] of results) {
    const of = (field) => median(runs.map((each) => each[field]));
    const ratio = (field) => median(runs.map((each, index) => each[field] / raw[index][field])).toFixed(2);
    console.log(
      `${String(inFlight).padStart(3)} in flight  ${name.padEnd(16)} ${of("perSecond").toFixed(0).padStart(6)} pairs/s (${ratio("perSecond")} x raw)   p50 ${of("p50").toFixed(2)} ms (${ratio("p50")} x raw)   client CPU ${of("cpu").toFixed(0)} us/pair`,
    );
  }
}

try {
  for (let index = 0; index < KEYS; index += 1) await storePair(alone)(index);
  await compare(1, { store: storePair(alone) });
  for (const inFlight of [64, 256]) {
    const contenders = Object.fromEntries(
      [1, 2, 3, 4].map((calls) => [
        `store, ${calls} call${calls > 1 ? "s" : ""}`,
        storePair(batching(calls)),
      ]),
    );
    await compare(inFlight, contenders);
  }
} finally {
  await store.close();
  await pool.end();
  await server.stop();
}
