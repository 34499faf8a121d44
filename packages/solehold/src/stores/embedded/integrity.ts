/** Whether a data file can be handed to LMDB, which would crash on a damaged one. */
import { decodeRecord } from "../../core/index.ts";
import { DamagedFile, DataFile, isLayoutKnown } from "./data-file.ts";
import { keyFromBytes, keyFromId } from "./keys.ts";
import { PageWalk, type WalkLevel } from "./page-walk.ts";

/** Up to this size every page is looked at on opening. */
export const FULL_CHECK_BYTES = 2 ** 25;
const ATTEMPTS = 5;
const VERSION_BYTES = 8;

export interface CheckReport {
  readonly level: WalkLevel;
  readonly records: number;
  readonly bytes: number;
}

/** Throws DamagedFile. "auto" is full for small files and quick for large ones. */
export function checkDataFile(path: string, level: WalkLevel | "auto"): CheckReport | null {
  if (!isLayoutKnown()) return null;
  let transaction: number | null = null;
  for (let attempt = 1; ; attempt += 1) {
    const file = new DataFile(path);
    try {
      return checkOnce(file, level === "auto" ? levelFor(file.bytes) : level);
    } catch (error) {
      // Another process may be writing, and reuse pages while they are being read here.
      const before: number | null = transaction;
      transaction = transactionOf(file);
      if (!(error instanceof DamagedFile) || transaction === null || transaction === before) throw error;
      if (attempt >= ATTEMPTS) return null;
    } finally {
      file.close();
    }
  }
}

function levelFor(bytes: number): WalkLevel {
  return bytes <= FULL_CHECK_BYTES ? "full" : "quick";
}

function checkOnce(file: DataFile, level: WalkLevel): CheckReport {
  let records = 0;
  const walk = new PageWalk(file, level, (key, value) => {
    records += 1;
    assertOwnKey(key, value);
  });
  walk.run();
  return { level, records, bytes: file.bytes };
}

function transactionOf(file: DataFile): number | null {
  try {
    return file.snapshot().transaction;
  } catch {
    return null;
  }
}

/**
 * A damaged value is reported when it is read. A damaged key is worse: its record would seem absent, and
 * its fence would start anew. It shows by a sound record that names another key.
 */
function assertOwnKey(key: Buffer, value: Buffer): void {
  const text = value.toString("utf8", VERSION_BYTES);
  const [, , , tenant, name] = text.split("\n", 5);
  const id = `${tenant}/${name}`;
  if (key.toString() === id) return;
  const record = text.slice(text.indexOf("\n") + 1);
  if (!decodeRecord(record, keyFromId(id)).ok) return;
  const found = JSON.stringify(keyFromBytes(key));
  throw new DamagedFile(`the record of ${JSON.stringify(keyFromId(id))} lies under the key ${found}`);
}
