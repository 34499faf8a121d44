/**
 * The files of the store's clock: `clock.json` with the epochs, `mark` with the latest instant that came with a commit.
 * Both have a checksum, because a digit that flipped would be another time. A mark that is too old only lengthens what
 * was alive, so it need not be written together with the records, only before them.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Env } from "../../env/index.ts";
import type { Boot } from "../support/boot.ts";
import { EpochClock, type EpochState, epochOf } from "../support/epoch-clock.ts";
import { codeOf, replaceFile, syncFolder } from "../support/files.ts";
import { configError } from "../support/options.ts";

interface By {
  readonly folder: string;
  readonly env: Env;
}

/** Joins the clock of this boot, or begins it. Only for the owner of the lock. */
export async function openClock(by: By, boot: Boot): Promise<EpochClock> {
  const path = join(by.folder, "clock.json");
  const last = (await readChecked(path)) as EpochState | null;
  const markMs = Number((await readChecked(join(by.folder, "mark"))) ?? last?.startMs ?? 0);
  const state = epochOf(last, markMs, by.env, boot);
  if (state !== last) {
    // The mark of the new epoch first: the old one would be too late for it only if time went back.
    await writeMark(by, state.startMs);
    await replaceFile(path, withCheck(state), by);
    await syncFolder(by.folder);
  }
  return new EpochClock(state, by.env, boot);
}

export async function writeMark(by: By, markMs: number): Promise<void> {
  await replaceFile(join(by.folder, "mark"), withCheck(markMs), by);
}

/** A line of JSON, and a line with its checksum. */
function withCheck(value: unknown): string {
  const line = JSON.stringify(value);
  return `${line}\n${checkOf(line)}\n`;
}

function checkOf(line: string): string {
  return createHash("sha256").update(line).digest("hex").slice(0, 16);
}

/** Null when there is no such file. */
async function readChecked(path: string): Promise<unknown> {
  try {
    const [line = "", check] = (await readFile(path, "utf8")).split("\n");
    if (check === checkOf(line)) return JSON.parse(line);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
  throw configError(
    `'${path}' is damaged: its checksum does not fit its content, and without it no expiry can be judged. Restore it from a backup; or delete it once no lease in the folder can be held any more`,
  );
}
