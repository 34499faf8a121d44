// Growth: the same work beside 1,000 and beside 1,000,000 live leases, on the embedded store and on the server over it.
// All sizes are open at once and take turns, so the smallest is the floor of the others.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { connect } from "solehold";
import { openEmbeddedStore } from "solehold/embedded";
import { compete } from "../lib/compete.mjs";
import { privateBytes } from "../lib/cpu.mjs";
import { leasePairs, warmNames } from "../lib/pairs.mjs";
import { applyAll, heldRecord } from "../lib/records.mjs";
import { withResources } from "../lib/resources.mjs";
import { atMost, figure, rowOf } from "../lib/rows.mjs";
import { startServer } from "../lib/server-process.mjs";

export const about = "Growth: the same work beside more and more live leases";

const SIZES = [1_000, 10_000, 100_000, 1_000_000];
const QUICK_SIZES = [1_000, 10_000, 100_000];
const HELD = 20_000;
const LOAD_AT_ONCE = 50_000;
const IN_FLIGHT = 16;
const CHILD = fileURLToPath(new URL("../lib/growth-child.mjs", import.meta.url));

export function run({ quick, pace, say }) {
  return withResources(async (resources) => {
    const sizes = quick ? QUICK_SIZES : SIZES;
    const places = [];
    for (const size of sizes) {
      say(`writing ${size.toLocaleString("en-US")} leases`);
      const folder = resources.folder();
      await fill(folder, size);
      say("opening them again");
      places.push({ size, folder, ...(await measureChild(folder, size === sizes[0] ? HELD : 0)) });
    }
    const embedded = await competeSizes({ title: "embedded", places, pace, say }, async ({ folder }, own) =>
      own.add(await connect(`embedded:${folder}`), (each) => each.close()),
    );
    const servers = new Map();
    const server = await competeSizes(
      { title: "server", places, pace, say },
      async ({ folder, size }, own) => {
        const startedAt = performance.now();
        const started = await startServer({
          dataDir: resources.folder(),
          // By default a tenant may have a million.
          flags: ["--store", `embedded:${folder}`, "--leases-per-tenant", "2000000"],
        });
        own.add(started, (each) => each.stop());
        servers.set(size, started);
        const leases = own.add(await connect(started.url), (each) => each.close());
        await firstGrant(leases);
        started.firstGrantMs = performance.now() - startedAt;
        started.privateBytes = privateBytes(started.pid);
        return leases;
      },
    );
    return {
      conditions: [
        `${sizes.map((size) => size.toLocaleString("en-US")).join(", ")} live leases; pairs of acquire and release of other keys, ${IN_FLIGHT} in flight, every write synced`,
        "memory: what only this process has (RssAnon), against the smallest size; pages of the data file are the system's cache",
      ],
      groups: [embedded, server],
      chart: chartOf(sizes, { embedded, server }),
      rows: rowsOf({ places, servers, embedded, server }),
    };
  });
}

async function fill(folder, size) {
  const store = await openEmbeddedStore({ folder });
  for (let start = 0; start < size; start += LOAD_AT_ONCE) {
    const nowMs = store.now();
    const writes = Array.from({ length: Math.min(LOAD_AT_ONCE, size - start) }, (_, index) => {
      const next = heldRecord(`live/${start + index}`, { nowMs, ttlMs: 3_600_000 });
      return { key: next.key, expected: null, next };
    });
    await applyAll(store, writes);
  }
  await store.close();
}

/** A server may listen before it can grant: what is not answered is asked again. */
async function firstGrant(leases) {
  const lease = await leases.acquire("first", { wait: "3m" });
  await lease.release();
}

async function measureChild(folder, held) {
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--expose-gc",
    CHILD,
    folder,
    String(held),
  ]);
  return JSON.parse(stdout);
}

async function competeSizes({ title, places, pace, say }, open) {
  return await withResources(async (own) => {
    const contenders = [];
    for (const place of places) {
      const leases = await open(place, own);
      contenders.push({
        name: `${place.size.toLocaleString("en-US")} leases`,
        role: contenders.length === 0 ? "floor" : "ours",
        turn: leasePairs(leases, warmNames()),
      });
    }
    return await compete({ title, inFlight: IN_FLIGHT, contenders, pace, say });
  });
}

function rowsOf({ places, servers, embedded, server }) {
  const smallest = places[0];
  const largest = places[places.length - 1];
  const size = `${largest.size.toLocaleString("en-US")} leases`;
  const each = (more, less) => (more - less) / (largest.size - smallest.size);
  const small = servers.get(smallest.size);
  const large = servers.get(largest.size);
  return [
    rowOf(embedded, {
      title: `growth: embedded, p50 at ${size}`,
      name: size,
      field: "p50Ms",
      bars: [atMost(1.3)],
    }),
    rowOf(server, {
      title: `growth: server, p50 at ${size}`,
      name: size,
      field: "p50Ms",
      bars: [atMost(1.3)],
    }),
    figure(
      `growth: embedded, memory for each of ${size}`,
      each(largest.privateBytes, smallest.privateBytes),
      "bytes",
    ),
    figure(
      `growth: server, memory for each of ${size}`,
      each(large.privateBytes, small.privateBytes),
      "bytes",
    ),
    figure("growth: heap of a holder for each lease that it holds", smallest.heldBytes, "bytes"),
    figure(`growth: embedded, opening ${size}`, largest.openMs, "ms", { floor: smallest.openMs }),
    figure(`growth: server, listening with ${size}`, large.readyMs, "ms", { floor: small.readyMs }),
    figure(`growth: server, first grant with ${size}`, large.firstGrantMs, "ms", {
      floor: small.firstGrantMs,
    }),
  ];
}

function chartOf(sizes, groups) {
  const lines = Object.entries(groups).map(([label, { contenders }], index) => ({
    label,
    role: index === 0 ? "ours" : "peer",
    points: contenders.map(({ p50Ms }, at) => [sizes[at], p50Ms]),
  }));
  return { kind: "lines", xLabel: "live leases", yLabel: "p50 of a pair, ms", lines };
}
