// Fairness: three clients take turns at one key without a pause, 0, 5 and 20 ms away from the store or the server. What
// counts is that nobody waits much longer than the others do.
import { connect, Leases } from "solehold";
import { realEnv } from "solehold/env";
import { HttpTransport, RemoteExecutor, StreamTransport } from "solehold/internal";
import { WebSocket } from "ws";
import { startEtcd, startNats, startPostgres, startProxy, startRedis } from "../../scripts/engines/index.mjs";
import { pause } from "../lib/handovers.mjs";
import { withResources } from "../lib/resources.mjs";
import { figure } from "../lib/rows.mjs";
import { startServer } from "../lib/server-process.mjs";

export const about = "Fairness: three clients on one key, near and far";

const AWAY_MS = [0, 5, 20];
const BAR = 3;
/** Until all three wait, and know of each other. */
const SETTLE_MS = 2_000;

export function run({ quick, say }) {
  return withResources(async (resources) => {
    const forMs = quick ? 4_000 : 15_000;
    const added = async (starting) => resources.add(await starting, (each) => each.stop());
    const places = [
      { title: "redis", start: () => added(startRedis({ flags: ["--appendonly", "no"] })), open: connect },
      { title: "postgres", start: () => added(startPostgres()), open: connect },
      { title: "etcd", start: () => added(startEtcd({ members: 1 })), open: (url) => connect(etcdUrl(url)) },
      { title: "nats", start: () => added(startNats()), open: connect },
      { title: "server", start: () => added(startServer({ dataDir: resources.folder() })), open: openServer },
    ];
    const rows = [];
    for (const { title, start, open } of places) {
      say(title);
      const { url } = await start();
      rows.push(...rowsOf(title, await measure({ resources, url, open, forMs })));
    }
    return {
      conditions: [
        `three clients, ${AWAY_MS.join(", ")} ms away in each direction (by a proxy), take one key, give it back at once and want it again`,
        `the first ${SETTLE_MS / 1_000} s do not count; a wait runs from the call of acquire to its return`,
      ],
      doesMore: "fenced leases that expire",
      groups: [],
      rows,
    };
  });
}

const etcdUrl = (url) => url.replace(/^http:/, "etcd:");

/** Straight to one address: the usual client would learn the server's own address, and pass by the proxy. */
async function openServer(url) {
  const http = new HttpTransport({ url: new URL(url), env: realEnv });
  const stream = `${url.replace(/^http/, "ws")}/v1/stream`;
  const options = { headers: {}, allowSynchronousEvents: false };
  const transport = new StreamTransport({
    env: realEnv,
    http,
    where: url,
    connect: () => new WebSocket(stream, options),
  });
  return new Leases({ executor: new RemoteExecutor({ transport, env: realEnv }) });
}

async function measure({ resources, url, open, forMs }) {
  const target = new URL(url);
  const clients = [];
  for (const awayMs of AWAY_MS) {
    const proxy = resources.add(await startProxy({ targetPort: Number(target.port) }), (each) =>
      each.close(),
    );
    const leases = resources.add(await open(proxy.through(url)), (each) => each.close());
    proxy.delay(awayMs);
    clients.push({ leases, waits: [] });
  }
  const stop = new AbortController();
  const loops = clients.map((client) => takeTurns(client, stop.signal));
  await pause(SETTLE_MS);
  for (const client of clients) client.waits = [];
  await pause(forMs);
  const waits = clients.map((client) => client.waits);
  stop.abort();
  await Promise.all(loops);
  return waits;
}

async function takeTurns(client, signal) {
  while (!signal.aborted) {
    const began = performance.now();
    try {
      const lease = await client.leases.acquire("fair", { wait: "1m", signal });
      client.waits.push(performance.now() - began);
      await lease.release();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

function rowsOf(title, waits) {
  const all = waits.flat();
  const mean = all.reduce((sum, each) => sum + each, 0) / Math.max(1, all.length);
  const longest = Math.max(...all);
  const turns = waits.map((each) => each.length).join(", ");
  const ratio = longest / mean;
  return [
    figure(`fairness: ${title}, longest wait`, longest, "ms", {
      floor: mean,
      ratio,
      bar: `<= ${BAR} x the mean`,
      met: waits.every((each) => each.length > 0) && ratio <= BAR,
      note: `turns of the clients ${AWAY_MS.join(", ")} ms away: ${turns}`,
    }),
  ];
}
