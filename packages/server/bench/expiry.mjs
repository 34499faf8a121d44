// How late the ends of leases are announced to a watcher, in real time: first one by one, then a crowd that ends
// within one second. Late is the watcher's clock minus the record's expiry; both are this machine's.
// Usage: node packages/server/bench/expiry.mjs [leases-in-the-crowd] [audit]
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import WebSocket from "ws";

const [crowd = "100000", audit = "background"] = process.argv.slice(2);
const BATCH = 5_000;
const folder = mkdtempSync(join(tmpdir(), "solehold-bench-"));
const program = new URL("../../cli/bin/solehold.js", import.meta.url).pathname;
const words = ["serve", "--json", "--port", "0", "--data-dir", folder, "--log-level", "error"].concat([
  "--audit",
  audit,
  "--requests-per-second",
  "1000000",
]);
const server = spawn(process.execPath, [program, ...words], { stdio: ["ignore", "pipe", "inherit"] });
const url = await new Promise((resolve) => {
  server.stdout.once("data", (line) => resolve(JSON.parse(String(line)).url));
});

async function open() {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/stream`);
  const answers = new Map();
  const late = [];
  let nextId = 0;
  let resets = 0;
  socket.on("message", (data) => {
    const now = Date.now();
    for (const { id, status, event } of JSON.parse(String(data))) {
      if (event?.kind === "expired") late.push(now - event.lease.expiresAtMs);
      if (event?.kind === "reset") resets += 1;
      answers.get(id)?.(status);
      answers.delete(id);
    }
  });
  await new Promise((resolve) => socket.once("open", resolve));
  const ask = async (operations) => {
    const statuses = operations.map(() => {
      nextId += 1;
      return new Promise((resolve) => answers.set(nextId, resolve));
    });
    const first = nextId - operations.length;
    socket.send(
      JSON.stringify(operations.map((operation, index) => ({ id: first + index + 1, ...operation }))),
    );
    return await Promise.all(statuses);
  };
  return { socket, late, ask, resets: () => resets };
}

function figures(title, late) {
  late.sort((a, b) => a - b);
  const at = (part) => late[Math.min(late.length - 1, Math.floor(late.length * part))];
  console.log(
    `${title}: ${late.length} announced, late by p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`,
  );
}

/** Says what a quiet core could do when this machine is not quiet. */
async function cpuSeconds() {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1]);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const [watcher, holder] = [await open(), await open()];
try {
  await watcher.ask([{ op: "watch", prefix: "bench/" }]);
  for (let index = 0; index < 100; index += 1) {
    await holder.ask([{ op: "acquire", name: `bench/one/${index}`, holder: "bench", ttlMs: 300 }]);
    await pause(20);
  }
  while (watcher.late.length < 100) await pause(50);
  figures("one by one", watcher.late.splice(0));

  // All end within one second, however long it takes to acquire them.
  const endAtMs = Date.now() + 20_000 + Number(crowd) / 2;
  const count = Number(crowd);
  for (let from = 0; from < count; from += BATCH) {
    const operations = Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => ({
      op: "acquire",
      name: `bench/crowd/${from + index}`,
      holder: "bench",
      ttlMs: endAtMs - Date.now() + Math.floor(((from + index) / count) * 1_000),
    }));
    const refused = (await holder.ask(operations)).filter((status) => status !== 200).length;
    if (refused > 0) throw new Error(`${refused} were not granted`);
  }
  console.log(`${count} leases held, ending in ${((endAtMs - Date.now()) / 1_000).toFixed(1)} s`);
  await pause(Math.max(0, endAtMs - Date.now() - 500));
  const cpuBefore = await cpuSeconds();
  // Meanwhile somebody else works: what a blocked event loop would make slow.
  const latencies = [];
  const deadline = Date.now() + 60_000;
  while (watcher.late.length < count && watcher.resets() === 0 && Date.now() < deadline) {
    const start = performance.now();
    await holder.ask([{ op: "acquire", name: `work/${latencies.length}`, holder: "bench", ttlMs: 60_000 }]);
    latencies.push(performance.now() - start);
    await pause(5);
  }
  const cpuEach = (((await cpuSeconds()) - cpuBefore) * 1e6) / count;
  const { resets } = watcher;
  figures(`${count} within one second`, watcher.late.splice(0));
  if (resets() > 0) console.log(`the watcher read too slowly: ${resets()} resets took the place of events`);
  latencies.sort((a, b) => a - b);
  const at = (part) => latencies[Math.floor((latencies.length - 1) * part)].toFixed(1);
  console.log(
    `an acquire beside it: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms (${latencies.length} measured)`,
  );
  console.log(`server CPU for all of it: ${cpuEach.toFixed(0)} us per lease that ended`);
} finally {
  watcher.socket.close();
  holder.socket.close();
  server.kill("SIGTERM");
  await new Promise((resolve) => server.once("exit", resolve));
  rmSync(folder, { recursive: true, force: true });
}
