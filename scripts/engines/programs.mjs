// Finds the server programs and says what each engine needs. Installs no Debian packages (see install.mjs).
import { spawn } from "node:child_process";
import { accessSync, constants, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { EMULATORS, ensurePackages } from "../own-packages.mjs";
import { withLock } from "./lock.mjs";

/** @typedef {import("./index.mjs").EngineName} EngineName */

/** @type {Readonly<Record<EngineName, { readonly packages: readonly string[], readonly programs: readonly string[] }>>} */
export const requirements = {
  redis: { packages: ["redis-server"], programs: ["redis-server"] },
  postgres: { packages: ["postgresql"], programs: ["initdb", "postgres", "pg_isready"] },
  etcd: { packages: ["etcd-server", "etcd-client"], programs: ["etcd", "etcdctl"] },
  nats: { packages: ["nats-server"], programs: ["nats-server"] },
  ceph: {
    packages: ["ceph-mon", "ceph-osd", "radosgw", "ceph-common"],
    programs: ["ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "ceph-authtool", "monmaptool"],
  },
  mariadb: { packages: ["mariadb-server"], programs: ["mariadbd", "mariadb-install-db"] },
  // Not from Debian, see requirePackage.
  azurite: { packages: [], programs: [] },
  dynalite: { packages: [], programs: [] },
};

/** @type {readonly EngineName[]} */
export const engineNames = ["redis", "postgres", "etcd", "nats", "mariadb", "ceph", "azurite", "dynalite"];

/** The engine cannot run on this machine; not a failure of the engine itself. */
export class EngineUnavailableError extends Error {
  /** @override */
  name = "EngineUnavailableError";
}

/**
 * @param {EngineName} engine
 * @returns {string[]} the programs that are not on this machine.
 */
export function missingPrograms(engine) {
  return requirements[engine].programs.filter((program) => findProgram(program) === undefined);
}

/**
 * @param {EngineName} engine
 * @param {string} program
 * @returns {string} its absolute path.
 */
export function requireProgram(engine, program) {
  const path = findProgram(program);
  if (path !== undefined) return path;
  const { packages } = requirements[engine];
  throw new EngineUnavailableError(
    `${engine} needs the program "${program}", which is not on this machine: ` +
      `run \`npm run engines -- up ${engine}\` as root, or install ${packages.join(" ")}`,
  );
}

export const requireAzurite = () => requirePackage("azurite", "dist/src/blob/main.js");
export const requireDynalite = () => requirePackage("dynalite", "cli.js");

/**
 * The emulators come from npm, in a folder of their own, on first use: most who install Solehold never start one.
 * @param {EngineName} name Of the engine and of its npm package.
 * @param {string} script
 * @returns {Promise<{ readonly script: string, readonly version: string }>}
 */
async function requirePackage(name, script) {
  try {
    await withLock(EMULATORS, () => ensurePackages(EMULATORS, say), say);
    const manifest = createRequire(join(EMULATORS, "package.json")).resolve(`${name}/package.json`);
    const { version } = JSON.parse(readFileSync(manifest, "utf8"));
    return { script: join(dirname(manifest), script), version };
  } catch (error) {
    throw new EngineUnavailableError(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** @param {string} message */
const say = (message) => console.error(message);

/** @param {string} program */
export function findProgram(program) {
  const folders = (process.env.PATH ?? "").split(delimiter);
  // Daemons live where a normal user's PATH does not look, and Debian keeps PostgreSQL's under its version.
  folders.push("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", ...postgresFolders());
  for (const folder of folders) {
    const path = join(folder, program);
    try {
      accessSync(path, constants.X_OK);
      if (folder !== "") return path;
    } catch {
      // Not here.
    }
  }
  return undefined;
}

function postgresFolders() {
  const root = "/usr/lib/postgresql";
  try {
    const versions = readdirSync(root).sort((left, right) => Number(right) - Number(left));
    return versions.map((version) => join(root, version, "bin"));
  } catch {
    return [];
  }
}

/**
 * Runs a program to its end and returns what it printed.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ readonly cwd?: string, readonly env?: NodeJS.ProcessEnv, readonly timeoutMs?: number }} [options]
 * @returns {Promise<string>}
 */
export function run(command, args, { cwd, env, timeoutMs = 60_000 } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: timeoutMs,
      killSignal: "SIGKILL",
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...process.env, ...env },
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr.setEncoding("utf8").on("data", (chunk) => {
      stderr += chunk;
    });
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === 0) return resolve(stdout);
      const said = (stderr || stdout).trim().split("\n").slice(-8).join("\n");
      reject(new Error(`${command} ${args.join(" ")} ended with ${signal ?? `code ${code}`}:\n${said}`));
    });
  });
}
