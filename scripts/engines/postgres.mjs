// A real PostgreSQL server with durability left on (fsync, synchronous_commit): only the creation of the empty
// cluster is not synced. Loopback TCP only, password login (SCRAM), a superuser of its own.
import { chownSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { startEngine } from "./engine.mjs";
import { withPlace } from "./place.mjs";
import { EngineUnavailableError, requireProgram, run } from "./programs.mjs";

const SUPERUSER = "solehold";
const PASSWORD = "solehold";
const DATABASE = "postgres";

/** @type {typeof import("./index.mjs").startPostgres} */
export const startPostgres = async ({ dataDir: wanted, settings = [] } = {}) => {
  const startedAt = performance.now();
  // The three programs must be of one version, so the other two are taken from beside the first.
  const programs = dirname(realpathSync(requireProgram("postgres", "initdb")));
  const version = /(\d[\d.]*)/.exec(await run(join(programs, "postgres"), ["--version"]))?.[1] ?? "unknown";
  const account = serverAccount();

  return withPlace({ name: "postgres", dataDir: wanted, portCount: 1 }, async (place) => {
    const { dataDir, ports } = place;
    const [port = 0] = ports;
    const cluster = join(dataDir, "data");
    await createCluster({ programs, dataDir, cluster, account });
    const server = place.define({
      name: "postgres",
      command: join(programs, "postgres"),
      args: ["-D", cluster, ...serverSettings(port, settings).flatMap((setting) => ["-c", setting])],
      logFile: join(dataDir, "postgres.log"),
      ready: () =>
        run(join(programs, "pg_isready"), ["-q", "-h", "127.0.0.1", "-p", `${port}`]).then(() => true),
      // "Fast shutdown": open sessions are ended instead of waited for.
      stopSignal: "SIGINT",
      ...(account === undefined ? {} : { user: account.name }),
    });
    const urls = [`postgres://${SUPERUSER}:${PASSWORD}@127.0.0.1:${port}/${DATABASE}`];
    const beforeVacate = () => releaseSharedMemory(cluster);
    return startEngine(
      { name: "postgres", version, urls, place, processes: [server], beforeVacate },
      startedAt,
    );
  });
};

/**
 * @param {number} port
 * @param {readonly string[]} settings
 */
function serverSettings(port, settings) {
  return [
    "listen_addresses=127.0.0.1",
    `port=${port}`,
    // The default folder for the Unix socket belongs to the packaged service.
    "unix_socket_directories=",
    "max_connections=200",
    "log_min_messages=warning",
    ...settings,
  ];
}

/**
 * @param {{ programs: string, dataDir: string, cluster: string, account: ServerAccount | undefined }} place
 */
async function createCluster({ programs, dataDir, cluster, account }) {
  const passwordFile = join(dataDir, "password");
  writeFileSync(passwordFile, PASSWORD, { mode: 0o600 });
  mkdirSync(cluster, { mode: 0o700 });
  const initdb = [
    join(programs, "initdb"),
    ...["-D", cluster, "--no-sync", "--encoding=UTF8", "--locale=C"],
    ...[`--username=${SUPERUSER}`, `--pwfile=${passwordFile}`, "--auth=scram-sha-256"],
  ];
  if (account !== undefined) {
    chownSync(cluster, account.uid, account.gid);
    chownSync(passwordFile, account.uid, account.gid);
    initdb.unshift("setpriv", `--reuid=${account.uid}`, `--regid=${account.gid}`, "--clear-groups", "--");
  }
  const [command = "", ...args] = initdb;
  // initdb wants to be able to return to where it was called, and the other user may not enter there.
  await run(command, args, { cwd: "/" });
}

/** @typedef {{ readonly name: string, readonly uid: number, readonly gid: number }} ServerAccount */

/**
 * PostgreSQL refuses to run as root; then it runs as the user that its package created.
 * @returns {ServerAccount | undefined} undefined when we are not root and it can run as we do.
 */
function serverAccount() {
  if (process.getuid?.() !== 0) return undefined;
  const name = "postgres";
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((each) => each.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(":") ?? [];
  if (uid === undefined || gid === undefined) {
    throw new EngineUnavailableError(
      `postgres does not run as root, and there is no user "${name}": create it`,
    );
  }
  return { name, uid: Number(uid), gid: Number(gid) };
}

/**
 * A killed PostgreSQL leaves a System V segment that only its own next start would remove, and the machine has few.
 * @param {string} cluster
 */
async function releaseSharedMemory(cluster) {
  let segment;
  try {
    // The seventh line of its lock file: the key and the id of the segment.
    [, segment] =
      readFileSync(join(cluster, "postmaster.pid"), "utf8").split("\n")[6]?.trim().split(/\s+/) ?? [];
  } catch {
    return; // It ended in good order and removed both.
  }
  if (segment === undefined) return;
  await run("ipcrm", ["-m", segment]).catch(() => "another process removed it first");
}
