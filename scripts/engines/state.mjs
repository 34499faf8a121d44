// The state file: which shared engines run, where, and as which processes. Written by one command at a time (see
// lock.mjs), replaced as a whole, so a reader never sees half of it.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isAlive } from "./proc.mjs";

/** @typedef {import("./index.mjs").EnginesState} EnginesState */
/** @typedef {import("./index.mjs").EngineRecord} EngineRecord */

/** @returns {string} the folder of the shared engines: one a checkout and user, unless SOLEHOLD_ENGINES_DIR names one. */
export function enginesDir() {
  const { SOLEHOLD_ENGINES_DIR: wanted } = process.env;
  if (wanted) return resolve(wanted);
  const checkout = createHash("sha256")
    .update(fileURLToPath(new URL("../..", import.meta.url)))
    .digest("hex");
  return join(tmpdir(), `solehold-engines-${process.getuid?.() ?? 0}-${checkout.slice(0, 8)}`);
}

/** @type {typeof import("./index.mjs").stateFilePath} */
export const stateFilePath = () => resolve(process.env.SOLEHOLD_ENGINES || join(enginesDir(), "state.json"));

/** @returns {EnginesState} as written, dead engines included. */
export function readState() {
  const path = stateFilePath();
  let text;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT")
      return { schema: 1, engines: {} };
    throw error;
  }
  const fix = `delete ${path} and run \`npm run engines -- up\``;
  let state;
  try {
    state = JSON.parse(text);
  } catch {
    throw new Error(`the engines' state file is not JSON: ${fix}`);
  }
  if (state?.schema !== 1)
    throw new Error(`the engines' state file has schema ${state?.schema}, not 1: ${fix}`);
  return state;
}

/** @param {EnginesState} state */
export function writeState(state) {
  const path = stateFilePath();
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(state, undefined, 2)}\n`);
  renameSync(draft, path);
}

/**
 * @param {EngineRecord} record
 * @returns {boolean} whether every process of the engine, and the one that owns them, still runs.
 */
export function isUp(record) {
  return record.state === "up" && [record.supervisor, ...record.processes].every(isAlive);
}

/** @type {typeof import("./index.mjs").readLiveState} */
export const readLiveState = () => {
  const { schema, engines } = readState();
  const live = Object.entries(engines).filter(([, record]) => record.state === "unavailable" || isUp(record));
  return { schema, engines: Object.fromEntries(live) };
};
