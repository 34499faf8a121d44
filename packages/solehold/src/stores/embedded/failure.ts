/** What went wrong in the database, as a StoreError that says what to do and what may have happened. */
import { delay, type Env } from "../../env/index.ts";
import { type FailedOutcome, StoreError } from "../../store/index.ts";
import type { Databases } from "./database.ts";
import { noSpace, spaceLeft } from "./space.ts";

/** ENOSPC, EDQUOT, EFBIG, MDB_MAP_FULL. */
const NO_SPACE = new Set([28, 122, 27, -30792]);
const INPUT_OUTPUT_ERROR = 5;
/** A write that was cut short for lack of space is reported as an I/O error. */
const SPACE_LEFT_BYTES = 2 ** 20;
const CAUSE_PATIENCE_MS = 1_000;

/** LMDB tells the reason of a failed commit through a promise of its own, a moment later. */
async function reasonOf(error: unknown, env: Env): Promise<unknown> {
  const told = (error as { readonly commitError?: Promise<unknown> } | null)?.commitError;
  if (told === undefined) return error;
  const reason = told.then(
    () => error,
    (cause: unknown) => cause,
  );
  return await Promise.race([reason, delay(env, CAUSE_PATIENCE_MS).then(() => error)]);
}

/**
 * A transaction that fails is undone, unless the very last step failed: the write of the page that makes
 * the others valid. Then nobody knows what the disk will show after a crash, LMDB refuses all further
 * work in this process, and so a read fails as well.
 */
function outcomeOfFailedCommit({ root, meta }: Databases): FailedOutcome {
  try {
    root.resetReadTxn();
    meta.get("format");
    return "not-applied";
  } catch {
    return "unknown";
  }
}

export async function commitFailure(
  error: unknown,
  databases: Databases,
  env: Env,
  folder: string,
): Promise<StoreError> {
  if (error instanceof StoreError) return error;
  const cause = await reasonOf(error, env);
  const outcome = outcomeOfFailedCommit(databases);
  const { code } = cause as { readonly code?: unknown };
  if (isLackOfSpace(code, folder)) return noSpace(folder, { outcome, cause });
  const advice = outcome === "unknown" ? "check the disk, then open the store again" : "check the disk";
  const message = `the embedded store in '${folder}' could not write (${oneLine(cause)}): ${advice}`;
  return new StoreError("internal", message, { outcome, cause });
}

function isLackOfSpace(code: unknown, folder: string): boolean {
  if (typeof code !== "number") return false;
  if (NO_SPACE.has(code)) return true;
  return code === INPUT_OUTPUT_ERROR && spaceLeft(folder) < SPACE_LEFT_BYTES;
}

export function readFailure(cause: unknown, folder: string): StoreError {
  if (cause instanceof StoreError) return cause;
  const message = `the embedded store in '${folder}' could not be read (${oneLine(cause)}): restore it from a backup if this stays`;
  return new StoreError("internal", message, { outcome: "not-applied", cause });
}

export function configProblem(message: string, cause?: unknown): StoreError {
  return new StoreError("config", message, { outcome: "not-applied", cause });
}

export function oneLine(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  return text.replace(/\s+/g, " ").trim();
}
