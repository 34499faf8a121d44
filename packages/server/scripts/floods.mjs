/**
 * What a hostile client costs others, printed: `npm run floods -w packages/server [-- [--realtime] NAME...]`.
 *
 * For each flood a server of its own (memory store, three API keys), a tenant that renews its lease over a stream every few
 * milliseconds, and an attacker with a read-only key, none, or one for its own tenant, in a process of its own. Three kinds of times alternate, so
 * that other work on this machine falls on all: quiet ones; floods; and ones in which the attacker keeps a core as busy as
 * it did in the flood before, and asks the server for nothing. What those cost is the machine's price for a busy neighbour;
 * what the flood costs beyond it is the server's. The attacker's process goes after the two others, as one on a machine of its
 * own takes no core from them.
 *
 * `--realtime` (Linux, as root) lets all three go before whatever else runs on this machine: without it a busy one hides in
 * its own delays what a flood costs.
 *
 * Printed are the memory of the server before and at its highest, how much of a core the attacker used, and the 99th
 * percentile of the renewals in the three. The bars: 200 MB more, and twice the p99 of the times with a busy neighbour.
 */
import { execFileSync, fork, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { availableParallelism, constants, loadavg, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { KeyFile } from "@solehold/server";
import { realEnv } from "solehold/internal";
import { WebSocket } from "ws";

const PROGRAM = fileURLToPath(new URL("../../cli/bin/solehold.js", import.meta.url));
const ROUNDS = 4;
const PHASE_MS = 2_500;
const EVERY_MS = 5;
const MOST_MB = 200;
const MOST_RATIO = 2;

let isRealtime = false;

/** All threads: the garbage collector's too, or a process would wait for its own. */
const schedule = (pid, priority) =>
  isRealtime && execFileSync("chrt", ["--all-tasks", "--rr", "--pid", `${priority}`, `${pid}`]);

/** The server, and the tenant that is measured. */
const goFirst = (pid) => schedule(pid, 2);

function goLater(pid) {
  setPriority(pid, constants.priority.PRIORITY_LOW);
  schedule(pid, 1);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const bearer = (key) => ({ authorization: `Bearer ${key}` });
const open = async (url, key) => {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/stream`, { headers: bearer(key) });
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  socket.on("error", () => undefined);
  return socket;
};
const raw = (url, text) => {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => undefined);
  socket.write(text);
  return socket;
};
const unread = (socket) => {
  socket.pause();
  return socket;
};

/** Each begins a flood and returns how to end it. */
const FLOODS = {
  async lists({ url, readKey }) {
    const socket = unread(await open(url, readKey));
    const lists = Array.from({ length: 5_000 }, (_, id) => ({
      id,
      op: "list",
      tenant: "full",
      limit: 1_000,
    }));
    socket.send(JSON.stringify(lists));
    return () => socket.terminate();
  },
  async pings({ url, readKey }) {
    const socket = unread(await open(url, readKey));
    const body = Buffer.alloc(125);
    const timer = setInterval(() => {
      for (let count = 0; count < 1_000 && socket.readyState === WebSocket.OPEN; count += 1)
        socket.ping(body);
    }, 5);
    return () => {
      clearInterval(timer);
      socket.terminate();
    };
  },
  async pipelined({ url, readKey }) {
    const get = `GET /v1/leases?tenant=full&limit=1000 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${readKey}\r\n\r\n`;
    const socket = raw(url, get.repeat(5_000)).pause();
    return () => socket.destroy();
  },
  async connections({ url, readKey }) {
    const get = `GET /v1/leases?tenant=full&limit=1000 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${readKey}\r\n\r\n`;
    const sockets = Array.from({ length: 100 }, () => raw(url, get.repeat(10)).resume());
    return () => {
      for (const socket of sockets) socket.destroy();
    };
  },
  async refused({ url }) {
    const upgrade =
      "GET /v1/stream HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    const sockets = new Set();
    const timer = setInterval(() => {
      for (let count = 0; count < 10; count += 1) sockets.add(raw(url, upgrade));
    }, 10);
    return () => {
      clearInterval(timer);
      for (const socket of sockets) socket.destroy();
    };
  },
  async events({ url, readKey }) {
    const get = `GET /v1/watch?tenant=full HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${readKey}\r\n\r\n`;
    const sockets = Array.from({ length: 1_000 }, () => raw(url, get).pause());
    return () => {
      for (const socket of sockets) socket.destroy();
    };
  },
  async changes({ url, ownKey }) {
    const watches = Array.from({ length: 1_000 }, (_, id) => ({ id, op: "watch", tenant: "own" }));
    const sockets = await Promise.all(Array.from({ length: 5 }, () => open(url, ownKey)));
    for (const socket of sockets) socket.send(JSON.stringify(watches));
    const writer = await open(url, ownKey);
    const acquire = { op: "acquire", tenant: "own", name: "w", holder: "w", token: "w-token", ttlMs: 60_000 };
    writer.send(JSON.stringify({ id: "a", ...acquire }));
    const renewals = Array.from({ length: 20 }, (_, id) => ({ id, ...acquire, op: "renew" }));
    const timer = setInterval(() => writer.bufferedAmount < 1e6 && writer.send(JSON.stringify(renewals)), 20);
    return () => {
      clearInterval(timer);
      for (const socket of [...sockets, writer]) socket.terminate();
    };
  },
  async malformed({ url, readKey }) {
    const socket = await open(url, readKey);
    const bad = JSON.stringify(Array.from({ length: 1_000 }, () => ({ nonsense: 1 })));
    const timer = setInterval(() => socket.bufferedAmount < 1e6 && socket.send(bad), 5);
    return () => {
      clearInterval(timer);
      socket.terminate();
    };
  },
  async unauthenticated({ url }) {
    let isOver = false;
    const ask = async () => {
      while (!isOver)
        await fetch(`${url}/v1/leases`).then(
          (answer) => answer.text(),
          () => undefined,
        );
    };
    for (let count = 0; count < 32; count += 1) void ask();
    return () => {
      isOver = true;
    };
  },
};

async function withServer(work) {
  const dataDir = await mkdtemp(join(tmpdir(), "solehold-floods-"));
  const keys = new KeyFile(dataDir, realEnv);
  const hold = ["acquire", "renew", "release", "read"];
  const victim = { name: "victim", tenants: ["victim", "full"], prefixes: [""], actions: hold };
  const { key: victimKey } = await keys.add(victim);
  const reader = { name: "attacker", tenants: ["full"], prefixes: [""], actions: ["read"] };
  const { key: readKey } = await keys.add(reader);
  const { key: ownKey } = await keys.add({ ...victim, name: "own", tenants: ["own"] });
  const words = ["serve", "--json", "--port", "0", "--store", "memory:", "--audit", "memory"];
  const child = spawn(process.execPath, [PROGRAM, ...words, "--data-dir", dataDir, "--log-level", "silent"]);
  try {
    const line = await new Promise((resolve, reject) => {
      child.stdout.setEncoding("utf8").once("data", resolve);
      child.once("close", () => reject(new Error("the server did not start")));
    });
    goFirst(child.pid);
    const { url } = JSON.parse(line);
    const memory = () => {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024;
    };
    await work({ url, victimKey, attackerKeys: [readKey, ownKey], memory });
  } finally {
    child.kill("SIGKILL");
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** A stream that asks, one after the other. */
async function asker(url, key) {
  const socket = await open(url, key);
  const waiting = new Map();
  socket.on("message", (data) => {
    for (const { id, status } of [JSON.parse(String(data))].flat()) waiting.get(id)?.(status);
  });
  let next = 0;
  return (message) =>
    new Promise((resolve) => {
      const id = ++next;
      waiting.set(id, (status) => {
        waiting.delete(id);
        resolve(status);
      });
      socket.send(JSON.stringify({ id, ...message }));
    });
}

/** How long each renewal took. */
async function renewals(ask, forMs) {
  const took = [];
  const end = performance.now() + forMs;
  while (performance.now() < end) {
    const begun = performance.now();
    const status = await ask({ op: "renew", tenant: "victim", name: "job", holder: "v", token: "v-token" });
    if (status !== 200) throw new Error(`a renewal was answered ${status}`);
    took.push(performance.now() - begun);
    await pause(EVERY_MS);
  }
  return took;
}

function p99(rounds) {
  const took = rounds.flat().sort((a, b) => a - b);
  return took[Math.min(took.length - 1, Math.floor(took.length * 0.99))];
}

const SAMPLE_MS = 20;

/** What this process uses of a core, from now until it is asked: how long each sample took, and how much of it. */
function sampled() {
  const samples = [];
  let last = { atMs: performance.now(), cpu: process.cpuUsage() };
  const take = () => {
    const [atMs, { user, system }] = [performance.now(), process.cpuUsage(last.cpu)];
    const tookMs = atMs - last.atMs;
    samples.push({ tookMs, busyMs: Math.min(tookMs, (user + system) / 1_000) });
    last = { atMs, cpu: process.cpuUsage() };
  };
  const timer = setInterval(take, SAMPLE_MS);
  return () => {
    clearInterval(timer);
    take();
    return samples;
  };
}

/** Uses a core as the samples say, and asks nobody for anything. Returns how to end it. */
function burn(samples) {
  let isOver = false;
  const repeat = async () => {
    for (const { tookMs, busyMs } of samples) {
      const end = performance.now() + busyMs;
      while (performance.now() < end);
      if (isOver) return;
      await pause(tookMs - busyMs);
    }
  };
  void repeat();
  return () => {
    isOver = true;
  };
}

/** The attacker's process: floods, or burns what the flood before did, from a message on until "end". */
async function attack(name, url, readKey, ownKey) {
  let samples = [];
  let end = () => undefined;
  const flood = async () => {
    const stopSampling = sampled();
    const stop = await FLOODS[name]({ url, readKey, ownKey });
    return () => {
      stop();
      samples = stopSampling();
    };
  };
  process.on("message", async (message) => {
    if (message === "end") end();
    else end = message === "flood" ? await flood() : burn(samples);
    const sum = (field) => samples.reduce((total, sample) => total + sample[field], 0);
    process.send({ part: sum("busyMs") / sum("tookMs") });
  });
  process.on("disconnect", () => process.exit());
  process.send({});
}

async function attackerOf(name, url, keys) {
  const child = fork(fileURLToPath(import.meta.url), ["--attack", name, url, ...keys]);
  goLater(child.pid);
  const said = () => new Promise((resolve) => child.once("message", resolve));
  const tell = async (message) => {
    const done = said();
    child.send(message);
    return await done;
  };
  await said();
  return { tell, stop: () => child.kill("SIGKILL") };
}

async function measure(name, { url, victimKey, attackerKeys, memory }) {
  const ask = await asker(url, victimKey);
  const note = "n".repeat(500);
  for (let index = 0; index < 1_000; index += 1)
    await ask({ op: "acquire", tenant: "full", name: `n/${index}`, holder: "v", ttlMs: 600_000, note });
  await ask({ op: "acquire", tenant: "victim", name: "job", holder: "v", token: "v-token", ttlMs: 60_000 });
  const attacker = await attackerOf(name, url, attackerKeys);
  await renewals(ask, PHASE_MS);
  const before = memory();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, memory());
  }, 20);
  const times = { quiet: [], busy: [], flooded: [] };
  let part = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    times.quiet.push(await renewals(ask, PHASE_MS));
    const begun = attacker.tell("flood");
    times.flooded.push(await renewals(ask, PHASE_MS));
    await begun;
    ({ part } = await attacker.tell("end"));
    // What the flood left behind belongs to it.
    times.flooded.push(await renewals(ask, PHASE_MS / 5));
    await attacker.tell("burn");
    times.busy.push(await renewals(ask, PHASE_MS));
    await attacker.tell("end");
  }
  clearInterval(watch);
  attacker.stop();
  const [quiet, busy, flooded] = [times.quiet, times.busy, times.flooded].map(p99);
  return { before, most, part, quiet, busy, flooded };
}

async function main(argv) {
  isRealtime = argv.includes("--realtime");
  goFirst(process.pid);
  const wanted = argv.filter((word) => word !== "--realtime");
  const unknown = wanted.find((name) => !Object.hasOwn(FLOODS, name));
  if (unknown !== undefined) throw new Error(`no flood ${unknown}: use ${Object.keys(FLOODS).join(", ")}`);
  const names = wanted.length === 0 ? Object.keys(FLOODS) : wanted;
  const cell = (value) => value.toFixed(1).padStart(8);
  console.log(`${availableParallelism()} cores, load ${loadavg()[0].toFixed(1)} at the start`);
  console.log(
    "flood            MB first     most | attacker | p99 ms: quiet  busy neighbour   flood | ratio | load | MB, p99",
  );
  let failures = 0;
  for (const name of names) {
    await withServer(async (server) => {
      const { before, most, part, quiet, busy, flooded } = await measure(name, server);
      const isWithin = [most - before <= MOST_MB, flooded <= MOST_RATIO * busy];
      if (isWithin.includes(false)) failures += 1;
      const [memory, speed] = isWithin.map((is) => (is ? "yes" : "NO"));
      const ratio = `${(flooded / busy).toFixed(1)}x`.padStart(5);
      const core = `${(part * 100).toFixed(0)} %`.padStart(8);
      const load = loadavg()[0].toFixed(1).padStart(4);
      console.log(
        `${name.padEnd(16)} ${cell(before)} ${cell(most)} | ${core} | ${cell(quiet)}      ${cell(busy)}        ${cell(flooded)} | ${ratio} | ${load} | ${memory}, ${speed}`,
      );
    });
  }
  process.exit(failures === 0 ? 0 : 1);
}

const [flag, ...rest] = process.argv.slice(2);
if (flag === "--attack") await attack(...rest);
else await main(process.argv.slice(2));
