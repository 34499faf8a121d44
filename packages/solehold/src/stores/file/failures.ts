/** What goes wrong in the folder of the file store, as StoreErrors. */
import { type FailedOutcome, StoreError } from "../../store/index.ts";
import { FolderLockError } from "../../support/folder-lock.ts";
import * as support from "../support/file-failure.ts";

export function configProblem(message: string, cause?: unknown): StoreError {
  return new StoreError("config", message, { outcome: "not-applied", cause });
}

export function fileFailure(folder: string, error: unknown, outcome: FailedOutcome): StoreError {
  if (error instanceof FolderLockError) return lockFailure(error);
  return support.fileFailure(`the file store in '${folder}'`, error, outcome);
}

/** Without the lock nothing was written; with a lost one somebody else may have written, too. */
function lockFailure(error: FolderLockError): StoreError {
  return error.kind === "held"
    ? new StoreError("timeout", error.message, { outcome: "not-applied", cause: error })
    : new StoreError("internal", error.message, { outcome: "unknown", cause: error });
}
