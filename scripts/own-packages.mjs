// Folders with a package.json and a lock file of their own: what only benchmarks or only some tests need. `npm ci` at
// the root leaves them out; whoever needs one calls `ensurePackages` first. Their install scripts are not run: what is
// in these folders brings its native code prebuilt.
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { join, relative, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "..");

export const BENCH = join(ROOT, "bench");
export const EMULATORS = join(ROOT, "scripts/engines/emulators");
/** What adapters adapt: the real packages, for their tests. */
export const ADAPTED = join(ROOT, "packages/solehold/test/adapters/packages");

/**
 * Installs the packages of the folder, unless they are there and newer than its lock file. Two calls at once would
 * disturb each other: the caller sees to it that there is one.
 * @param {string} folder
 * @param {(message: string) => void} [say]
 * @returns {Promise<void>}
 */
export async function ensurePackages(folder, say = () => {}) {
  if (areInstalled(folder)) return;
  const name = relative(ROOT, folder);
  say(`installing the packages of ${name}`);
  // Only errors: a peer that asks for a newer Node.js does not matter to a benchmark.
  await npm(["ci", "--ignore-scripts", "--loglevel=error"], folder).catch((error) => {
    throw new Error(`the packages of ${name} could not be installed (npm ci in ${name}): ${error.message}`);
  });
}

/**
 * npm writes this file at the end of an installation.
 * @param {string} folder
 */
export function areInstalled(folder) {
  const changedAtMs = (/** @type {string} */ file) =>
    statSync(join(folder, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return changedAtMs("node_modules/.package-lock.json") > changedAtMs("package-lock.json");
}

/**
 * @param {readonly string[]} args
 * @param {string} cwd
 * @returns {Promise<void>}
 */
function npm(args, cwd) {
  return new Promise((resolvePromise, reject) => {
    const child = spawn("npm", args, { cwd, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (chunk) => {
      said += chunk;
    });
    child.once("error", reject);
    child.once("close", (code) =>
      code === 0 ? resolvePromise() : reject(new Error(said.trim() || `npm ended with ${code}`)),
    );
  });
}
