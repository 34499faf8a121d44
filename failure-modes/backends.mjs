// Where a library keeps its locks, and what can be done to it: a Redis, an etcd, or files. One shape for all:
//   { direct, viaProxy, server, proxy, loseData(), untilTaken(key), cutOffUntilTaken(subject), cutOffUntilOver(), stop() }
// Files have no server and no proxy: there, a holder is cut off by keeping its event loop busy.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect as tcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd, startProxy, startRedis } from "../scripts/engines/index.mjs";
import { TTL_MS } from "./subjects.mjs";

const OTHER = join(import.meta.dirname, "other.mjs");
const OVER_MS = TTL_MS * 1.5;
const MOST_MS = 10 * TTL_MS;

async function behindProxy(server, own) {
  const proxy = await startProxy({ targetPort: Number(new URL(server.url).port) });
  const cutOff = async (wait) => {
    proxy.freeze();
    try {
      return await wait();
    } finally {
      proxy.heal();
    }
  };
  return {
    ...{ server, proxy, direct: server.url, viaProxy: proxy.through(server.url) },
    cutOffUntilTaken: (subject, takenByOther) => cutOff(() => takenByOther(subject, server.url, MOST_MS)),
    cutOffUntilOver: () => cutOff(() => sleep(OVER_MS)),
    stop: () => server.stop(),
    ...own,
  };
}

async function redis() {
  const server = await startRedis();
  return await behindProxy(server, {
    loseData: () => rawRedis(server.url, "FLUSHALL"),
    // An acquire is one call: its reply is the one that is lost.
    untilTaken: (proxy) => proxy.nextDroppedReply(),
  });
}

async function rawRedis(url, ...words) {
  const { hostname, port } = new URL(url);
  const socket = tcp(Number(port), hostname);
  socket.write(`*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`);
  await new Promise((resolve) => socket.once("data", resolve));
  socket.end();
}

const ALL_KEYS = { key: "AA==", range_end: "AA==" };

async function etcd() {
  const server = await startEtcd({ members: 1 });
  const ask = async (path) => {
    const answer = await fetch(`${server.url}/v3/kv/${path}`, {
      method: "POST",
      body: JSON.stringify(ALL_KEYS),
    });
    if (!answer.ok) throw new Error(`etcd answered ${answer.status} to ${path}`);
    return await answer.json();
  };
  return await behindProxy(server, {
    loseData: () => ask("deleterange"),
    // An acquire is several calls: the lock is taken when its key is there.
    async untilTaken() {
      for (let leftMs = MOST_MS; (await ask("range")).kvs === undefined && leftMs > 0; leftMs -= 10)
        await sleep(10);
    },
  });
}

async function files() {
  const folder = mkdtempSync(join(tmpdir(), "solehold-failure-modes-"));
  return {
    ...{ server: null, proxy: null, direct: folder, viaProxy: folder },
    loseData() {
      for (const name of readdirSync(folder))
        if (name.endsWith(".lock")) rmSync(join(folder, name), { recursive: true });
    },
    /** The event loop of this process stands still meanwhile. */
    cutOffUntilTaken(subject) {
      const { stdout } = spawnSync(process.execPath, [OTHER, subject.name, folder], { timeout: MOST_MS });
      return String(stdout).startsWith("taken") ? 0 : null;
    },
    cutOffUntilOver() {
      const untilMs = performance.now() + OVER_MS;
      while (performance.now() < untilMs);
    },
    async stop() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const BACKENDS = { redis, etcd, files };
