// Owns the shared engines that one `up` started. It runs detached from the terminal; when it ends, for whatever
// reason, they end. Until the command that started it confirms that the state file is written, it ends with that
// command, so an interrupted `up` leaves nothing behind.
import { join } from "node:path";
import * as engines from "./index.mjs";
import { processInfo } from "./proc.mjs";
import { EngineUnavailableError } from "./programs.mjs";

/** @typedef {import("./index.mjs").EngineName} EngineName */
/** @typedef {{ readonly type: "start", readonly names: EngineName[], readonly folder: string } | { readonly type: "keep" }} Order */
/** @typedef {{ readonly type: "result", readonly name: EngineName, readonly record?: import("./index.mjs").EngineRecord, readonly failure?: string }} Report */

/** @type {Readonly<Record<EngineName, (options: import("./index.mjs").StartOptions) => Promise<import("./index.mjs").Engine>>>} */
const starters = {
  redis: engines.startRedis,
  postgres: engines.startPostgres,
  etcd: engines.startEtcd,
  nats: engines.startNats,
  mariadb: engines.startMariadb,
  ceph: engines.startCeph,
  azurite: engines.startAzurite,
  dynalite: engines.startDynalite,
};

/** @type {import("./index.mjs").Engine[]} */
const started = [];
let kept = false;

async function end() {
  await Promise.allSettled(started.map((engine) => engine.stop()));
  process.exit(0);
}

/** @param {Report} report */
function send(report) {
  process.send?.(report);
}

/**
 * @param {EngineName} name
 * @param {string} folder
 */
async function start(name, folder) {
  try {
    // The pid keeps apart what an interrupted `up`, still on its way out, deletes, and what the next one creates.
    const engine = await starters[name]({ dataDir: join(folder, `${name}-${process.pid}`) });
    started.push(engine);
    send({ type: "result", name, record: describe(engine) });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof EngineUnavailableError) {
      send({ type: "result", name, record: { state: "unavailable", name, reason } });
    } else {
      send({ type: "result", name, failure: reason });
    }
  }
}

/**
 * @param {import("./index.mjs").Engine} engine
 * @returns {import("./index.mjs").EngineRecord}
 */
function describe({ name, version, url, urls, credentials, dataDir, processes, readyMs }) {
  return {
    state: "up",
    name,
    version,
    url,
    urls,
    credentials,
    dataDir,
    processes: processes.map((each) => identity(each.name, each.pid)),
    supervisor: identity("supervisor", process.pid),
    secondsToReady: Math.round(readyMs) / 1000,
  };
}

/**
 * @param {string} name
 * @param {number} pid
 */
function identity(name, pid) {
  return { name, pid, startTicks: processInfo(pid)?.startTicks ?? "gone" };
}

process.on("SIGTERM", end);
process.on("SIGINT", end);
process.on("disconnect", () => {
  if (!kept) void end();
});
process.on("message", (/** @type {Order} */ order) => {
  if (order.type === "keep") {
    kept = true;
    process.disconnect();
    return;
  }
  for (const name of order.names) void start(name, order.folder);
});
