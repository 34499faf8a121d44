// Temp folders of engines. A folder's name holds the pid of its owner, so that what a killed test process left
// behind is removed by the next one that starts an engine.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { processInfo } from "./proc.mjs";

/** @type {Set<string>} */
const owned = new Set();
let swept = false;

/**
 * @param {string} name
 * @param {string | undefined} wanted
 * @returns {string} the path of a new empty folder.
 */
export function createDataDir(name, wanted) {
  sweepOnce();
  if (wanted !== undefined && existsSync(wanted)) {
    throw new Error(
      `dataDir ${wanted} exists already: name a folder that does not, it is deleted at the end`,
    );
  }
  if (wanted !== undefined) mkdirSync(wanted, { recursive: true });
  const folder = wanted ?? mkdtempSync(join(tmpdir(), `${ownPrefix()}${process.pid}-${name}-`));
  // PostgreSQL runs as another user when we are root, and must be able to walk through to its own folder.
  chmodSync(folder, 0o711);
  owned.add(folder);
  return folder;
}

/** @param {string} folder */
export function removeDataDir(folder) {
  owned.delete(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

/** For the exit of this process: synchronous, and silent because nobody is left to act on a failure. */
export function removeAllDataDirs() {
  for (const folder of owned) {
    try {
      removeDataDir(folder);
    } catch {
      // The next process that starts an engine sweeps what is left.
    }
  }
}

/** Pids mean something only inside their namespace: containers may share a temp folder but not their pids. */
function ownPrefix() {
  const namespace = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";
  return `solehold-engine-${namespace}-`;
}

function sweepOnce() {
  if (swept) return;
  swept = true;
  const prefix = ownPrefix();
  for (const entry of readdirSync(tmpdir())) {
    if (!entry.startsWith(prefix)) continue;
    const owner = Number.parseInt(entry.slice(prefix.length), 10);
    if (processInfo(owner) !== undefined) continue;
    try {
      rmSync(join(tmpdir(), entry), { recursive: true, force: true });
    } catch {
      // Another user's folder, or another sweeper at work: not ours to complain about.
    }
  }
}
