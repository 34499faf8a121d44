/**
 * The store's clock in files: the machine's monotonic clock plus an offset, as in the embedded store, whose
 * comment gives the reasons. The mark, the latest instant that came with a commit, has a file of its own:
 * one that is too old only lengthens what was alive, so it need not be written together with the records.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Env } from "../../env/index.ts";
import type { Boot } from "../embedded/boot.ts";
import {
  belongsToBoot,
  type ClockState,
  firstEpoch,
  nextEpoch,
  parseClock,
  printClock,
  StoreClock,
} from "../embedded/clock.ts";
import { codeOf, configProblem } from "./failures.ts";
import { replaceFile, syncFolder } from "./folder.ts";

const CLOCK_FILE = "clock.json";
const MARK_FILE = "mark";

/** Joins the clock of this boot, or begins it. Only for the owner of the lock. */
export async function openClock(internal: string, env: Env, boot: Boot): Promise<StoreClock> {
  const last = await readClock(internal);
  if (last !== null && belongsToBoot(last, boot)) return new StoreClock(last, env, boot);
  const state =
    last === null ? firstEpoch(env, boot) : nextEpoch(last, await readMark(internal, last), env, boot);
  // The mark of the new epoch first: the old one would be too late for it only if time went back.
  await replaceFile(internal, join(internal, MARK_FILE), String(state.startMs), env);
  await replaceFile(internal, join(internal, CLOCK_FILE), printClock(state), env);
  await syncFolder(internal);
  return new StoreClock(state, env, boot);
}

export async function writeMark(internal: string, markMs: number, env: Env): Promise<void> {
  await replaceFile(internal, join(internal, MARK_FILE), String(markMs), env);
}

async function readClock(internal: string): Promise<ClockState | null> {
  const path = join(internal, CLOCK_FILE);
  const text = await readOrNull(path);
  if (text === null) return null;
  const state = parseClock(text);
  if (state === null)
    throw configProblem(`'${path}' is damaged: restore it from a backup; without it no expiry can be judged`);
  return state;
}

async function readMark(internal: string, last: ClockState): Promise<number> {
  const mark = Number((await readOrNull(join(internal, MARK_FILE))) ?? Number.NaN);
  return Number.isSafeInteger(mark) ? Math.max(mark, last.startMs) : last.startMs;
}

async function readOrNull(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}
