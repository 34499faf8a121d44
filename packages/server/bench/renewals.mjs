// Many live leases kept by one client over one stream: renewed every third of their ttl, all in one message.
// Prints how busy the server's event loop is. Usage: node packages/server/bench/renewals.mjs [leases] [seconds]
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import WebSocket from "ws";

const [count = "10000", seconds = "30"] = process.argv.slice(2);
const TTL_MS = 30_000;
const BATCH = 5_000;
const folder = mkdtempSync(join(tmpdir(), "solehold-bench-"));
const program = new URL("../../cli/bin/solehold.js", import.meta.url).pathname;
const words = ["serve", "--json", "--port", "0", "--data-dir", folder, "--log-level", "error"];
const server = spawn(process.execPath, [program, ...words], { stdio: ["ignore", "pipe", "inherit"] });
const url = await new Promise((resolve) => {
  server.stdout.once("data", (line) => resolve(JSON.parse(String(line)).url));
});
const socket = new WebSocket(`${url.replace("http", "ws")}/v1/stream`);
await new Promise((resolve) => socket.once("open", resolve));
const waiting = new Map();
let nextId = 0;
socket.on("message", (data) => {
  for (const { id, status } of JSON.parse(String(data))) {
    waiting.get(id)?.(status);
    waiting.delete(id);
  }
});

const leases = Array.from({ length: Number(count) }, (_, index) => ({
  name: `kept/${index}`,
  holder: "bench",
  token: `token-${index}`,
  ttlMs: TTL_MS,
}));

async function all(op) {
  const answers = [];
  for (let from = 0; from < leases.length; from += BATCH) {
    const messages = leases.slice(from, from + BATCH).map((lease) => {
      nextId += 1;
      answers.push(new Promise((resolve) => waiting.set(nextId, resolve)));
      return { id: nextId, op, ...lease };
    });
    socket.send(JSON.stringify(messages));
  }
  const statuses = await Promise.all(answers);
  const failed = statuses.filter((status) => status !== 200).length;
  if (failed > 0) throw new Error(`${failed} of ${statuses.length} were not ${op}d`);
}

/** One scrape: the busy ratio counts from the one before. */
async function scrape() {
  const text = await (await fetch(`${url}/metrics`)).text();
  const reading = (name) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
  return { busy: reading("solehold_event_loop_busy_ratio"), cpu: reading("process_cpu_seconds_total") };
}

try {
  await all("acquire");
  await all("renew");
  const before = await scrape();
  const start = performance.now();
  let rounds = 0;
  while (performance.now() - start < Number(seconds) * 1_000) {
    const begun = performance.now();
    await all("renew");
    rounds += 1;
    const left = TTL_MS / 3 - (performance.now() - begun);
    console.log(`round ${rounds}: ${count} renewals in ${(performance.now() - begun).toFixed(0)} ms`);
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, left)));
  }
  const elapsed = (performance.now() - start) / 1_000;
  const after = await scrape();
  const [busy, cpu] = [after.busy, after.cpu - before.cpu];
  console.log(
    `${count} leases, ttl ${TTL_MS / 1_000} s: event loop busy ${(busy * 100).toFixed(0)} %, CPU ${((cpu / elapsed) * 100).toFixed(0)} % of a core`,
  );
} finally {
  socket.close();
  server.kill("SIGTERM");
  await new Promise((resolve) => server.once("exit", resolve));
  rmSync(folder, { recursive: true, force: true });
}
