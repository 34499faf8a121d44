/**
 * How thoroughly a data file is looked at when it is opened. A small one: always completely. A large one:
 * completely by the first process after a boot of the machine, or after the file was replaced; the others
 * trust that look, because until the next boot they all read the same pages of memory.
 */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DATA_FILE } from "./database.ts";
import type { WalkLevel } from "./page-walk.ts";

const CHECKED_FILE = "checked";
/** Takes a tenth of a second. */
const SMALL_FILE_BYTES = 2 ** 25;

export function levelFor(folder: string, bootId: string): WalkLevel {
  const isSmall = statSync(join(folder, DATA_FILE)).size <= SMALL_FILE_BYTES;
  return isSmall || readMark(folder) !== markFor(folder, bootId) ? "full" : "quick";
}

/** Not durable on purpose: it says something about this boot only. */
export function noteChecked(folder: string, bootId: string): void {
  const mark = markFor(folder, bootId);
  if (readMark(folder) === mark) return;
  try {
    writeFileSync(join(folder, CHECKED_FILE), mark, { mode: 0o600 });
  } catch {
    // A full disk: then the next one looks for itself.
  }
}

function markFor(folder: string, bootId: string): string {
  const { dev, ino } = statSync(join(folder, DATA_FILE));
  return `${bootId} ${dev} ${ino}\n`;
}

function readMark(folder: string): string | null {
  try {
    return readFileSync(join(folder, CHECKED_FILE), "utf8");
  } catch {
    return null;
  }
}
