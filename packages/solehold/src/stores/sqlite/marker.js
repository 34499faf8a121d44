/**
 * The file `solehold.json`: this folder is a store, and at least this version was acknowledged.
 *
 * SQLite ends its recovery at the first frame of the write-ahead file that does not fit, and forgets what came later
 * without a word: it cannot tell damage from a commit that was never finished. An older copy of the database, too, looks
 * sound. So each commit is noted here after it was synced and before it is answered. The note itself is not synced: after
 * a loss of power it may be older than the database, never newer. It wakes those who watch the store, too.
 */
import { constants, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { hash, Refusal } from "./integrity.js";

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

/** The version; null when there is no marker. Throws when it is none. @param {string} folder @returns {number | null} */
export function readMarker(folder) {
  const path = join(folder, MARKER_FILE);
  if (!existsSync(path)) return null;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const text = readFileSync(path, "utf8");
    // Empty: it was being made when the process or the machine ended.
    if (text === "") return null;
    const version = Number(/"acknowledged":"(\d+)"/.exec(text)?.[1]);
    if (text === textOf(version)) return version;
  }
  throw new Refusal(
    `'${path}' is damaged, or not a marker of this version of the embedded store: use another folder or the version that wrote it, or delete the marker if you trust the database beside it`,
  );
}

/** @param {string} folder @returns {number} its descriptor */
export function openMarker(folder) {
  return openSync(join(folder, MARKER_FILE), constants.O_RDWR | constants.O_CREAT, 0o600);
}

/** @param {number} marker @param {number} version */
export function acknowledge(marker, version) {
  try {
    writeSync(marker, textOf(version), 0);
  } catch {
    // The commit counts; the note is then as old as after a loss of power.
  }
}
