// The shared engines of a checkout: up, down and status, as functions. The command line only prints their results,
// and a test runner may call them directly.
import { spawn } from "node:child_process";
import { chmodSync, closeSync, mkdirSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "./install.mjs";
import { withLock } from "./lock.mjs";
import { descendants, isAlive, memoryBytes } from "./proc.mjs";
import { engineNames } from "./programs.mjs";
import { enginesDir, isUp, readState, stateFilePath, writeState } from "./state.mjs";
import { waitFor } from "./waiting.mjs";

/** @typedef {import("./index.mjs").EngineName} EngineName */
/** @typedef {import("./index.mjs").EngineRecord} EngineRecord */
/** @typedef {import("./index.mjs").ProcessIdentity} ProcessIdentity */

/**
 * @typedef {object} UpResult
 * @property {EngineName} name
 * @property {"started" | "was up" | "unavailable" | "failed"} outcome
 * @property {EngineRecord} [record]
 * @property {string} [reason] Why it is unavailable or failed.
 */

/** @typedef {(message: string) => void} Say */

const END_TIMEOUT_MS = 20_000;

/**
 * Starts those of the engines that do not run, all at once, and leaves the others alone.
 * @param {readonly EngineName[]} names
 * @param {Say} [say]
 * @returns {Promise<UpResult[]>} in the order of the names.
 */
export function up(names, say = () => {}) {
  const folder = enginesDir();
  return withLock(folder, () => upLocked(names, folder, say), say);
}

/**
 * @param {readonly EngineName[]} names
 * @param {string} folder
 * @param {Say} say
 */
async function upLocked(names, folder, say) {
  /** @type {Map<EngineName, UpResult>} */
  const results = new Map();
  const engines = { ...readState().engines };
  for (const name of names) {
    const record = engines[name];
    if (record === undefined) continue;
    if (isUp(record)) {
      results.set(name, { name, outcome: "was up", record });
      continue;
    }
    await clear(record);
    delete engines[name];
  }
  const absent = names.filter((name) => !results.has(name));
  if (absent.length > 0) {
    for (const [name, reason] of await ensureInstalled(absent, say)) {
      engines[name] = { state: "unavailable", name, reason };
      results.set(name, { name, outcome: "unavailable", reason });
    }
    const toStart = absent.filter((name) => !results.has(name));
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o711);
    await startUnderSupervisor(
      toStart,
      folder,
      (result) => {
        results.set(result.name, result);
        if (result.record !== undefined) engines[result.name] = result.record;
      },
      () => writeState({ schema: 1, engines }),
    );
  }
  return names.map(
    (name) => results.get(name) ?? { name, outcome: /** @type {const} */ ("failed"), reason: "no result" },
  );
}

/**
 * @param {readonly EngineName[]} names
 * @param {string} folder
 * @param {(result: UpResult) => void} onResult
 * @param {() => void} persist Called when all results are in; from then on the engines outlive this process.
 */
async function startUnderSupervisor(names, folder, onResult, persist) {
  if (names.length === 0) return persist();
  const log = openSync(join(folder, "supervisor.log"), "a");
  const supervisor = spawn(process.execPath, [fileURLToPath(new URL("supervisor.mjs", import.meta.url))], {
    detached: true,
    stdio: ["ignore", log, log, "ipc"],
    cwd: folder,
  });
  closeSync(log);
  let anyStarted = false;
  await new Promise((resolve, reject) => {
    let missing = names.length;
    supervisor.on("message", (message) => {
      const { name, record, failure } = /** @type {import("./supervisor.mjs").Report} */ (message);
      if (record?.state === "up") anyStarted = true;
      if (failure !== undefined) onResult({ name, outcome: "failed", reason: failure });
      else if (record?.state === "unavailable")
        onResult({ name, outcome: "unavailable", record, reason: record.reason });
      else if (record !== undefined) onResult({ name, outcome: "started", record });
      missing -= 1;
      if (missing === 0) resolve(undefined);
    });
    supervisor.once("exit", () =>
      reject(new Error(`the engines' supervisor ended early: see ${folder}/supervisor.log`)),
    );
    supervisor.send({ type: "start", names, folder });
  });
  supervisor.removeAllListeners("exit");
  persist();
  if (anyStarted) supervisor.send({ type: "keep" });
  else supervisor.kill("SIGTERM");
  await new Promise((resolve) => supervisor.once("disconnect", () => resolve(undefined)));
  supervisor.unref();
}

/**
 * Ends the shared engines of these names and deletes their data; by default all of them. Nothing to do is fine.
 * @param {readonly EngineName[]} [names]
 * @param {Say} [say]
 * @returns {Promise<EngineName[]>} the engines that were there.
 */
export function down(names = engineNames, say = () => {}) {
  const folder = enginesDir();
  return withLock(folder, () => downLocked(names, folder), say);
}

/**
 * @param {readonly EngineName[]} names
 * @param {string} folder
 */
async function downLocked(names, folder) {
  const { engines } = readState();
  const records = Object.values(engines);
  const ending = records.filter(({ name }) => names.includes(name));
  const staying = records.filter(({ name }) => !names.includes(name));
  const busy = staying.flatMap((record) => (record.state === "up" ? [record.supervisor.pid] : []));
  // A supervisor that owns an engine which stays is left alone; its other engines are killed one by one.
  const supervisors = ending
    .flatMap((record) => (record.state === "up" ? [record.supervisor] : []))
    .filter(({ pid }) => !busy.includes(pid));
  for (const supervisor of supervisors) signal(supervisor, "SIGTERM");
  await untilGone(supervisors);
  for (const record of ending) await clear(record);
  if (staying.length > 0) {
    writeState({ schema: 1, engines: Object.fromEntries(staying.map((record) => [record.name, record])) });
  } else {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    rmSync(stateFilePath(), { force: true });
  }
  return ending.map(({ name }) => name);
}

/** @returns {{ name: EngineName, state: "up" | "dead" | "unavailable", record: EngineRecord, memoryBytes: number }[]} */
export function status() {
  const { engines } = readState();
  const records = engineNames.flatMap((name) => engines[name] ?? []);
  return records.map((record) => {
    const { name } = record;
    if (record.state === "unavailable") return { name, state: record.state, record, memoryBytes: 0 };
    const alive = record.processes.filter(isAlive);
    const memory = alive.reduce((sum, { pid }) => sum + memoryBytes(pid), 0);
    return { name, state: isUp(record) ? "up" : "dead", record, memoryBytes: memory };
  });
}

/**
 * Removes what is left of an engine that no supervisor looks after any more.
 * @param {EngineRecord} record
 */
async function clear(record) {
  if (record.state !== "up") return;
  const alive = record.processes.filter(isAlive);
  const children = alive.flatMap(({ pid }) => descendants(pid));
  for (const each of alive) signal(each, "SIGKILL");
  for (const pid of children) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended with its parent.
    }
  }
  await untilGone(alive);
  rmSync(record.dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

/** @param {readonly ProcessIdentity[]} identities */
async function untilGone(identities) {
  try {
    await waitFor("the engines did not end", END_TIMEOUT_MS, () => !identities.some(isAlive));
  } catch {
    for (const each of identities) signal(each, "SIGKILL");
  }
}

/**
 * @param {ProcessIdentity} identity
 * @param {NodeJS.Signals} name
 */
function signal(identity, name) {
  if (isAlive(identity)) process.kill(identity.pid, name);
}
