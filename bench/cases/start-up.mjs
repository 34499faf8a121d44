// Start-up: what a user waits for before anything happens. Processes are started in turns; medians.
import { spawnSync } from "node:child_process";
import { startEtcd, startNats, startPostgres, startRedis } from "../../scripts/engines/index.mjs";
import { importMs } from "../lib/import-time.mjs";
import { withResources } from "../lib/resources.mjs";
import { figure } from "../lib/rows.mjs";
import { CLI, startServer } from "../lib/server-process.mjs";
import { median } from "../lib/statistics.mjs";

export const about = "Start-up: command line, import, server";

const IMPORT_BAR_MS = 60;
/** Each with the client that it needs for Redis, as a program would import it. */
const LIBRARIES = {
  redlock: ["redlock", "ioredis"],
  "redis-semaphore": ["redis-semaphore", "ioredis"],
  "@verrou/core": ["@verrou/core", "@verrou/core/drivers/redis", "ioredis"],
  "redlock-universal": ["redlock-universal", "ioredis"],
  etcd3: ["etcd3"],
};

export async function run({ quick, say }) {
  const rounds = quick ? 3 : 15;
  say("command line");
  const commands = inTurns(rounds, {
    node: () => processMs(["-e", "0"]),
    help: () => processMs([CLI, "--help"]),
  });
  say("import");
  const imports = inTurns(rounds, {
    solehold: () => importMs(["solehold"]),
    redis: () => importMs(["solehold", "solehold/redis", "ioredis"]),
    ...Object.fromEntries(
      Object.entries(LIBRARIES).map(([name, modules]) => [name, () => importMs(modules)]),
    ),
  });
  say("server");
  const servers = await serverTimes(quick ? 2 : 7);
  return {
    conditions: [
      "floor of the command line: node without a program; imports are timed inside of a fresh process, files cached",
      "servers: from the start of the process to its first answer, on an empty folder (PostgreSQL with initdb)",
    ],
    chart: { groups: chartGroups({ commands, imports, servers }) },
    rows: rowsOf({ commands, imports, servers }),
  };
}

function rowsOf({ commands, imports, servers }) {
  const { solehold: own, redis, ...peers } = imports;
  const { solehold: server, ...others } = servers;
  return [
    figure("start-up: solehold --help", commands.help, "ms", { floor: commands.node }),
    figure("start-up: import of the main entry", own, "ms", {
      peers,
      bar: `< ${IMPORT_BAR_MS} ms`,
      met: own < IMPORT_BAR_MS,
    }),
    figure("start-up: import with the Redis store and its client", redis, "ms", { peers }),
    figure("start-up: server ready", server, "ms", { peers: others }),
  ];
}

/** One of each, then the next round; the first round warms the file cache. */
function inTurns(rounds, measures) {
  const times = Object.fromEntries(Object.keys(measures).map((name) => [name, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, measure] of Object.entries(measures)) {
      const ms = measure();
      if (round > 0) times[name].push(ms);
    }
  }
  return medians(times);
}

async function serverTimes(rounds) {
  const times = { solehold: [], redis: [], etcd: [], nats: [], postgres: [] };
  for (let round = 0; round < rounds; round += 1) {
    await withResources(async (resources) => {
      const server = resources.add(await startServer({ dataDir: resources.folder() }), (each) => each.stop());
      times.solehold.push(server.readyMs);
    });
    const engines = {
      redis: startRedis,
      etcd: () => startEtcd({ members: 1 }),
      nats: startNats,
      postgres: startPostgres,
    };
    for (const [name, start] of Object.entries(engines)) {
      const engine = await start();
      times[name].push(engine.readyMs);
      await engine.stop();
    }
  }
  return medians(times);
}

function processMs(words) {
  const started = performance.now();
  const { status, stderr } = spawnSync(process.execPath, words);
  if (status !== 0) throw new Error(`${words.join(" ")} ended with code ${status}: ${stderr}`);
  return performance.now() - started;
}

function medians(times) {
  return Object.fromEntries(Object.entries(times).map(([name, values]) => [name, median(values)]));
}

function chartGroups({ commands, imports, servers }) {
  const role = (name) =>
    name === "node" ? "floor" : ["help", "solehold", "redis store"].includes(name) ? "ours" : "peer";
  const bars = (values) =>
    Object.entries(values).map(([label, value]) => ({ label, value, role: role(label) }));
  const { redis, ...others } = imports;
  return [
    { title: "command line", unit: "ms", bars: bars(commands) },
    { title: "import", unit: "ms", bars: bars({ ...others, "redis store": redis }) },
    { title: "server ready", unit: "ms", bars: bars(servers) },
  ];
}
