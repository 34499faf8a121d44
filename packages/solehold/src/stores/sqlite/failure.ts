/** What went wrong in a thread or a folder, as a StoreError that says what to do and what may have happened. */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";
import type { ThreadFailure } from "./protocol.ts";

/** By SQLite's primary result code. "F" stands for the folder, "(M)" for what SQLite says. */
const BY_CODE: Readonly<Record<number, readonly [StoreErrorKind, string]>> = {
  5: ["timeout", "another process has kept the write lock in F: if it is stopped, continue or end it"],
  8: ["config", "the store in F is read-only: make the folder and its files writable for this process"],
  10: ["internal", "the disk of the embedded store in F failed (M): check it"],
  11: ["internal", "the database in F is damaged (M): restore it from a backup"],
  13: ["full", "no space left for the embedded store in F: free some and try again"],
  14: ["config", "the database in F cannot be opened (M): check its folder and its rights"],
};
const OTHERWISE = ["internal", "the embedded store in F failed (M): open it again"] as const;
const [BUSY, READ_ONLY, FULL] = [5, 8, 13];
/** SQLITE_IOERR_SHMSIZE: no space for the file beside the write-ahead file. */
const NO_SPACE_FOR_INDEX = 4_874;

export function storeFailure({ code, message, at }: ThreadFailure, folder: string): StoreError {
  const cause = new Error(message);
  if (code === "refused") return configProblem(message, cause);
  const primary = code === NO_SPACE_FOR_INDEX ? FULL : (code ?? 0) & 0xff;
  const wasNeverDone = at === "before" || [BUSY, READ_ONLY, FULL].includes(primary);
  const outcome: FailedOutcome = wasNeverDone ? "not-applied" : "unknown";
  const [kind, text] = BY_CODE[primary] ?? OTHERWISE;
  const line = text.replace("F", () => `'${folder}'`).replace("(M)", () => `(${oneLine(message)})`);
  return new StoreError(kind, line, { outcome, cause });
}

export function configProblem(message: string, cause?: unknown): StoreError {
  return new StoreError("config", oneLine(message), { outcome: "not-applied", cause });
}

export function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
