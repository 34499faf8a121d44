// @ts-check
/**
 * The file `solehold.json`: this folder is a store, and at least this version was acknowledged.
 *
 * SQLite ends its recovery at the first frame of the write-ahead file that does not fit, and forgets what came later
 * without a word: it cannot tell damage from a commit that was never finished. An older copy of the database, too, looks
 * sound. So each commit is noted here after it was synced and before it is answered. The note itself is not synced: after
 * a loss of power it may be older than the database, never newer. It wakes those who watch the store, too.
 */
import { closeSync, constants, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { hash } from "./integrity.js";

export const MARKER_FILE = "solehold.json";
const STORE = "solehold-embedded";
const FORMAT = 2;
/** Another process may be in the middle of writing it. */
const ATTEMPTS = 10;

/** As long for every version, because it is written in place. @param {number} version */
function textOf(version) {
  const acknowledged = String(version).padStart(16, "0");
  const digest = hash(`${STORE} ${FORMAT} ${acknowledged}`).toString(16).padStart(8, "0");
  return `${JSON.stringify({ store: STORE, format: FORMAT, acknowledged, digest })}\n`;
}

/** The version; null when there is no marker. @param {string} folder @returns {number | null} */
export function readMarker(folder) {
  const path = join(folder, MARKER_FILE);
  if (!existsSync(path)) return null;
  let problem = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const text = readFileSync(path, "utf8");
    // It was being made when the process or the machine ended.
    if (text === "") return null;
    const marker = parsed(text);
    if (text === textOf(Number(marker.acknowledged))) return Number(marker.acknowledged);
    problem =
      marker.store === STORE && marker.format !== FORMAT
        ? `'${folder}' has format ${String(marker.format)}, this version reads format ${FORMAT}: use the version that wrote it`
        : `'${path}' is damaged or not a marker of the embedded store: use another folder, or delete it if you trust the database beside it`;
  }
  throw Object.assign(new Error(problem), { code: "refused" });
}

/** @param {string} text @returns {{ store?: unknown, format?: unknown, acknowledged?: unknown }} */
function parsed(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

export class Marker {
  #descriptor;

  /** @param {string} folder */
  constructor(folder) {
    this.#descriptor = openSync(join(folder, MARKER_FILE), constants.O_RDWR | constants.O_CREAT, 0o600);
  }

  /** @param {number} version */
  acknowledge(version) {
    writeSync(this.#descriptor, textOf(version), 0);
  }

  sync() {
    fsyncSync(this.#descriptor);
  }

  close() {
    closeSync(this.#descriptor);
  }
}
