// Real servers for the tests of stores. `engine` is the URL of the shared instance, which it starts if it is not up: no
// test declares what it needs. A test that wants to kill, pause or restart a server starts one of its own instead,
// because the shared ones serve every test file at the same time.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import {
  type EngineName,
  type EngineRecord,
  type RunningEngineRecord,
  readLiveState,
  stateFilePath,
} from "../../../../scripts/engines/index.mjs";

export type {
  Engine,
  EngineName,
  EngineProcess,
  EtcdEngine,
  FaultProxy,
  RunningEngineRecord,
} from "../../../../scripts/engines/index.mjs";
export {
  startAzurite,
  startCeph,
  startDynalite,
  startEtcd,
  startMariadb,
  startNats,
  startPostgres,
  startProxy,
  startRedis,
} from "../../../../scripts/engines/index.mjs";

/** The URL of the shared engine: `engine("redis")` is `redis://127.0.0.1:…`. */
export function engine(name: EngineName): string {
  return engineRecord(name).url;
}

const CLI = fileURLToPath(new URL("../../../../scripts/engines/cli.mjs", import.meta.url));

/** All there is to know of the shared engine: every URL of a cluster, the version, keys and bucket of the S3 server. */
export function engineRecord(name: EngineName): RunningEngineRecord {
  const { [name]: found } = readLiveState().engines;
  const record = found ?? startShared(name);
  if (record.state === "unavailable")
    throw new Error(`the engine "${name}" is unavailable here: ${record.reason}`);
  return record;
}

/** Waits without yielding, so that a test file can ask for an engine in any place. Two files that ask at once start one. */
function startShared(name: EngineName): EngineRecord {
  const { stdout, stderr } = spawnSync(process.execPath, [CLI, "up", name], { encoding: "utf8" });
  const { [name]: record } = readLiveState().engines;
  if (record !== undefined) return record;
  throw new Error(
    `the engine "${name}" could not be started (looked in ${stateFilePath()}):\n${stderr || stdout}`,
  );
}
