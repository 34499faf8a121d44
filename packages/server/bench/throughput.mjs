// acquire+release pairs per second against a server process, over HTTP and over the stream, 64 in flight; and
// the server's CPU time per request, which says what a quiet core could do when this machine is not quiet.
// Usage: node packages/server/bench/throughput.mjs [store-url] [seconds] [audit]
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import WebSocket from "ws";

const IN_FLIGHT = 64;
/** Until the engine has compiled what runs often. */
const WARM_UP_PAIRS = 10_000;
const folder = mkdtempSync(join(tmpdir(), "solehold-bench-"));
const [store = `embedded:${folder}/data`, seconds = "5", audit = "before-reply"] = process.argv.slice(2);
const forMs = Number(seconds) * 1_000;

const server = spawn(
  process.execPath,
  [new URL("../../cli/bin/solehold.js", import.meta.url).pathname, "serve", "--json", "--port", "0"].concat([
    "--data-dir",
    folder,
    "--store",
    store,
    "--audit",
    audit,
    "--log-level",
    "error",
  ]),
  { stdio: ["ignore", "pipe", "inherit"] },
);
const url = await new Promise((resolve, reject) => {
  server.stdout.once("data", (line) => resolve(JSON.parse(String(line)).url));
  server.once("exit", () => reject(new Error("the server did not start")));
});

async function cpuSeconds() {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1]);
}

async function run(title, send) {
  const warmedUp = await pairs(send, ({ done }) => done >= WARM_UP_PAIRS);
  if (warmedUp.length < WARM_UP_PAIRS) throw new Error("the warm-up ended early");
  const cpuBefore = await cpuSeconds();
  const start = performance.now();
  const latencies = await pairs(send, () => performance.now() - start > forMs);
  const elapsed = (performance.now() - start) / 1_000;
  const cpuEach = Math.round((((await cpuSeconds()) - cpuBefore) * 1e6) / (latencies.length * 2));
  latencies.sort((a, b) => a - b);
  const at = (part) => latencies[Math.floor(latencies.length * part)].toFixed(1);
  const requests = Math.round((latencies.length * 2) / elapsed);
  console.log(
    `${title}: ${requests} requests/s (${Math.round(latencies.length / elapsed)} pairs/s), pair p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${cpuEach} us CPU per request`,
  );
}

/** How long each acquire+release took. */
async function pairs(send, isOver) {
  const latencies = [];
  const worker = async (index) => {
    for (let turn = 0; !isOver({ done: latencies.length }); turn += 1) {
      const lease = {
        name: `bench/${index}/${turn % 100}`,
        holder: `h${index}`,
        token: `token-${index}-${turn}`,
      };
      const start = performance.now();
      if ((await send("acquire", { ...lease, ttlMs: 30_000 })) !== 200) throw new Error("not granted");
      if ((await send("release", lease)) !== 200) throw new Error("not released");
      latencies.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, (_, index) => worker(index)));
  return latencies;
}

const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
const overHttp = (op, body) =>
  new Promise((resolve, reject) => {
    const text = JSON.stringify(body);
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
    const call = request(`${url}/v1/leases/${op}`, { method: "POST", agent, headers }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
    });
    call.on("error", reject);
    call.end(text);
  });

const socket = new WebSocket(`${url.replace("http", "ws")}/v1/stream`);
await new Promise((resolve) => socket.once("open", resolve));
const waiting = new Map();
let nextId = 0;
let outgoing = [];
socket.on("message", (data) => {
  for (const { id, status } of JSON.parse(String(data))) {
    waiting.get(id)?.(status);
    waiting.delete(id);
  }
});
const overStream = (op, body) =>
  new Promise((resolve) => {
    nextId += 1;
    waiting.set(nextId, resolve);
    if (outgoing.length === 0) {
      process.nextTick(() => {
        socket.send(JSON.stringify(outgoing));
        outgoing = [];
      });
    }
    outgoing.push({ id: nextId, op, ...body });
  });

try {
  console.log(`store ${store.split(":")[0]}, audit ${audit}, ${IN_FLIGHT} in flight`);
  await run("HTTP  ", overHttp);
  await run("stream", overStream);
} finally {
  socket.close();
  agent.destroy();
  server.kill("SIGTERM");
  await new Promise((resolve) => server.once("exit", resolve));
  rmSync(folder, { recursive: true, force: true });
}
