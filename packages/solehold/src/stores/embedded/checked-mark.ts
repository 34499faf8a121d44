/**
 * How thoroughly a data file is looked at when it is opened. A small one: always completely. A large one:
 * completely by the first process after a boot of the machine, or after the file was replaced; the others
 * trust that look, because until the next boot they all read the same pages of memory.
 */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lastTransactionIn } from "./data-file.ts";
import { DATA_FILE } from "./database.ts";
import type { WalkLevel } from "./page-walk.ts";

const CHECKED_FILE = "checked";
/** Takes a tenth of a second. */
const SMALL_FILE_BYTES = 2 ** 25;

export function levelFor(folder: string, bootId: string): WalkLevel {
  const { size } = statSync(join(folder, DATA_FILE));
  return size > SMALL_FILE_BYTES && wasChecked(folder, bootId) ? "quick" : "full";
}

/** Not durable on purpose: it says something about this boot only. */
export function noteChecked(folder: string, bootId: string): void {
  if (wasChecked(folder, bootId)) return;
  try {
    const mark = `${identity(folder, bootId)} ${lastTransactionIn(join(folder, DATA_FILE))}\n`;
    writeFileSync(join(folder, CHECKED_FILE), mark, { mode: 0o600 });
  } catch {
    // A full disk, or a layout that is not known: then the next one looks for itself.
  }
}

/** A backup that was copied over the file has fewer transactions than the file had when it was checked. */
function wasChecked(folder: string, bootId: string): boolean {
  try {
    const mark = readFileSync(join(folder, CHECKED_FILE), "utf8");
    const end = mark.lastIndexOf(" ");
    return (
      mark.slice(0, end) === identity(folder, bootId) &&
      Number(mark.slice(end)) <= lastTransactionIn(join(folder, DATA_FILE))
    );
  } catch {
    return false;
  }
}

function identity(folder: string, bootId: string): string {
  const { dev, ino } = statSync(join(folder, DATA_FILE));
  return `${bootId} ${dev} ${ino}`;
}
