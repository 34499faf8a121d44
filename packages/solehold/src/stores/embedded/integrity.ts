/** Whether a data file can be handed to LMDB, which would crash on a damaged one. */
import { decodeRecord } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import { DamagedFile, DataFile, isLayoutKnown } from "./data-file.ts";
import { keyFromBytes, keyFromId } from "./keys.ts";
import { Pace } from "./pace.ts";
import { PageWalk, type WalkLevel } from "./page-walk.ts";
import { decodeShort, SHORT_FORM_BYTE } from "./short-form.ts";

const ATTEMPTS = 5;
/** Less than a millisecond's worth. */
const PAGES_PER_LOOK = 25;
const VERSION_BYTES = 8;
const LINE_BREAK = 0x0a;
const SLASH = 0x2f;
const FIRST_PRINTABLE = 0x20;

export interface CheckReport {
  readonly level: WalkLevel;
  /** Those that were looked at: none by a quick check. */
  readonly records: number;
  readonly pagesInUse: number;
  readonly bytes: number;
}

/** Rejects with DamagedFile. Null when other processes wrote too fast, or the file's layout is not known. */
export async function checkDataFile(path: string, level: WalkLevel, env: Env): Promise<CheckReport | null> {
  if (!isLayoutKnown()) return null;
  let transaction: number | null = null;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const file = new DataFile(path);
    try {
      return await checkOnce(file, level, env);
    } catch (error) {
      // Another process may be writing, and reuse pages while they are being read here.
      const before: number | null = transaction;
      transaction = transactionOf(file);
      if (!(error instanceof DamagedFile) || transaction === null || transaction === before) throw error;
    } finally {
      file.close();
    }
  }
  return null;
}

async function checkOnce(file: DataFile, level: WalkLevel, env: Env): Promise<CheckReport> {
  let records = 0;
  const steps = new PageWalk(file, level, (key, value) => {
    records += 1;
    assertOwnKey(key, value);
  }).run();
  const pace = new Pace(env);
  for (let pages = 1; ; pages += 1) {
    const step = steps.next();
    if (step.done) return { level, records, pagesInUse: step.value, bytes: file.bytes };
    if (pages % PAGES_PER_LOOK === 0) await pace.keep();
  }
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
 * its fence would start anew. It shows by a sound record that names another key, or where the value is damaged
 * as well, by bytes that no key has.
 */
function assertOwnKey(key: Buffer, value: Buffer): void {
  const isShort = value[VERSION_BYTES] === SHORT_FORM_BYTE;
  const linesBefore = isShort ? 2 : 3;
  if (namesKey(value, key, linesBefore)) return;
  const text = value.toString("utf8", VERSION_BYTES);
  const [tenant, name] = text.split("\n").slice(linesBefore);
  const own = keyFromId(`${tenant}/${name}`);
  const isSound = isShort
    ? typeof decodeShort(text, own) !== "string"
    : decodeRecord(text.slice(text.indexOf("\n") + 1), own).ok;
  if (!isSound && isPossible(key)) return;
  const found = JSON.stringify(keyFromBytes(key));
  if (!isSound) throw new DamagedFile(`a record lies under the key ${found}, which cannot be one`);
  throw new DamagedFile(`the record of ${JSON.stringify(own)} lies under the key ${found}`);
}

/** A tenant and a name have no control characters. */
function isPossible(key: Buffer): boolean {
  return key.indexOf(SLASH) > 0 && key.every((byte) => byte >= FIRST_PRINTABLE);
}

/** Whether the value names, after so many lines, the key's tenant and then its name, without decoding it. */
function namesKey(value: Buffer, key: Buffer, linesBefore: number): boolean {
  let start = VERSION_BYTES;
  for (let line = 0; line < linesBefore; line += 1) start = value.indexOf(LINE_BREAK, start) + 1;
  const slash = key.indexOf(SLASH);
  const end = start + key.length;
  return (
    value[start + slash] === LINE_BREAK &&
    value[end] === LINE_BREAK &&
    value.compare(key, 0, slash, start, start + slash) === 0 &&
    value.compare(key, slash + 1, key.length, start + slash + 1, end) === 0
  );
}
