/** What the file system said, as a StoreError of one line that says what to do. */
import { type FailedOutcome, StoreError } from "../../store/index.ts";
import { codeOf } from "../../support/files.ts";
import { FolderLockError } from "../../support/folder-lock.ts";

/** `place` names the store and its path: "the file store in './leases'". */
export function fileFailure(place: string, error: unknown, outcome: FailedOutcome): StoreError {
  if (error instanceof StoreError) return error;
  if (error instanceof FolderLockError) return lockFailure(error);
  const fail = (kind: StoreError["kind"], what: string): StoreError =>
    new StoreError(kind, `${place}: ${what}`, { outcome, cause: error });
  switch (codeOf(error)) {
    case "EACCES":
    case "EPERM":
      return fail("config", "no permission to read and write: run as its owner or change its mode");
    case "EROFS":
      return fail("config", "it is on a read-only file system: choose a folder that can be written");
    case "ENOSPC":
    case "EDQUOT":
      return fail("full", "no space left: free some and try again");
    case "EMFILE":
    case "ENFILE":
      return fail("full", "too many open files: raise the limit (ulimit -n)");
    case "ENOTDIR":
      return fail("config", "a part of its path is not a folder: correct the path");
    case "ENOENT":
      return fail("config", "its folder is gone, or cannot be made there: restore it, or correct the path");
    default:
      return fail("internal", `${String((error as Error)?.message ?? error)}: check the disk`);
  }
}

/** Without the lock nothing was written; with a lost one somebody else may have written, too. */
function lockFailure(error: FolderLockError): StoreError {
  return error.kind === "held"
    ? new StoreError("timeout", error.message, { outcome: "not-applied", cause: error })
    : new StoreError("internal", error.message, { outcome: "unknown", cause: error });
}
