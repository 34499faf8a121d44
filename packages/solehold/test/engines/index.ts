// Real servers for the tests of stores. `engine` gives the URL of the shared instance that `npm run engines -- up`
// started; a test that wants to kill, pause or restart a server starts one of its own instead, because the shared
// ones serve every test file at the same time.
import {
  type EngineName,
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

/** All there is to know of the shared engine: every URL of a cluster, the version, keys and bucket of the S3 server. */
export function engineRecord(name: EngineName): RunningEngineRecord {
  const record = readLiveState().engines[name];
  if (record === undefined) {
    throw new Error(
      `the engine "${name}" is not up (looked in ${stateFilePath()}): run \`npm run engines -- up ${name}\``,
    );
  }
  if (record.state === "unavailable")
    throw new Error(`the engine "${name}" is unavailable here: ${record.reason}`);
  return record;
}
