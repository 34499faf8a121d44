// Takeover: a process that holds a lease ends, killed or asked to stop, and another one waits for it.
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { startPostgres, startRedis } from "../../scripts/engines/index.mjs";
import { pause } from "../lib/handovers.mjs";
import { withResources } from "../lib/resources.mjs";
import { figure } from "../lib/rows.mjs";
import { startServer } from "../lib/server-process.mjs";
import { median } from "../lib/statistics.mjs";
import { open } from "../lib/takeover-locks.mjs";

export const about = "Takeover: from the end of a holder's process to the next holder";

const HOLDER = join(import.meta.dirname, "../lib/takeover-holder.mjs");
const TTL_MS = 3_000;
/** The waiter is in its wait, and nobody has renewed yet. */
const SETTLE_MS = 400;
const STOP_BAR_MS = 100;
const KILL_BAR_MS = 100;
const PEERS = ["redlock", "redis-semaphore", "@verrou/core", "redlock-universal"];

export function run({ quick, say }) {
  return withResources(async (resources) => {
    const rounds = quick ? 3 : 10;
    const redis = resources.add(await startRedis({ flags: ["--appendonly", "no"] }), (each) => each.stop());
    const postgres = resources.add(await startPostgres(), (each) => each.stop());
    const server = resources.add(await startServer({ dataDir: resources.folder() }), (each) => each.stop());
    const places = [
      { title: "redis", url: redis.url, contenders: ["solehold", ...PEERS] },
      { title: "postgres", url: postgres.url, contenders: ["solehold"] },
      { title: "server", url: server.url, contenders: ["solehold"] },
      { title: "embedded", url: `embedded:${resources.folder()}`, contenders: ["solehold"] },
    ];
    const rows = [];
    for (const place of places) {
      say(place.title);
      for (const end of ["SIGTERM", "SIGKILL"]) rows.push(await measurePlace(place, end, rounds));
    }
    return {
      conditions: [
        `the holder is a process of its own, with a ttl of ${TTL_MS / 1_000} s; the next one waits already, in another process`,
        "asked to stop: from the SIGTERM to the next holder; ours calls leases.drain(), a peer its unlock",
        "killed: from the earliest end of the ttl, counted from before it was asked for, to the next holder; nobody may have it before",
        "peers with the same ttl, and else with their defaults; one that gives up waiting is asked again at once",
      ],
      doesMore: "the next holder has a higher fence, and the old one could not write behind a guard",
      groups: [],
      rows,
    };
  });
}

async function measurePlace({ title, url, contenders }, end, rounds) {
  const times = {};
  for (const contender of contenders) {
    times[contender] = [];
    for (let round = 0; round < rounds; round += 1)
      times[contender].push(await takeover({ contender, url, end, name: `takeover/${end}/${round}` }));
  }
  const { solehold, ...peers } = Object.fromEntries(
    Object.entries(times).map(([name, measured]) => [name, median(measured)]),
  );
  const bar = end === "SIGTERM" ? STOP_BAR_MS : KILL_BAR_MS;
  const what = end === "SIGTERM" ? "asked to stop" : "killed, after the end of the ttl";
  return figure(`takeover: ${title}, ${what}`, solehold, "ms", {
    ...{ peers, bar: `<= ${bar} ms`, met: solehold <= bar },
    longestMs: Math.max(...times.solehold),
  });
}

async function takeover({ contender, url, end, name }) {
  const holder = fork(HOLDER, [JSON.stringify({ contender, url, ttlMs: TTL_MS, name })]);
  const waiter = await open(contender, url, TTL_MS);
  try {
    const [{ askedAtMs }] = await once(holder, "message");
    const waiting = waiter.lock(name).then(async (unlock) => ({ unlock, atMs: nowMs() }));
    await pause(SETTLE_MS);
    const endedAtMs = nowMs();
    holder.kill(end);
    const { unlock, atMs } = await waiting;
    await unlock();
    return atMs - (end === "SIGTERM" ? endedAtMs : askedAtMs + TTL_MS);
  } finally {
    holder.kill("SIGKILL");
    await waiter.close();
  }
}

/** Comparable between processes of this machine. */
function nowMs() {
  return performance.timeOrigin + performance.now();
}
