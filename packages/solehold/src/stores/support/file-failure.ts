/** What the file system said, as a StoreError of one line that says what to do. */
import { type FailedOutcome, StoreError, type StoreErrorKind } from "../../store/index.ts";
import { codeOf } from "../../support/files.ts";
import { FolderLockError } from "../../support/folder-lock.ts";

type Advice = readonly [kind: StoreErrorKind, text: string];

const NO_RIGHTS: Advice = ["config", "no permission to read and write: run as its owner or change its mode"];
const NO_SPACE: Advice = ["full", "no space left: free some and try again"];
const TOO_MANY_FILES: Advice = ["full", "too many open files: raise the limit (ulimit -n)"];

const BY_CODE: Readonly<Record<string, Advice>> = {
  EACCES: NO_RIGHTS,
  EPERM: NO_RIGHTS,
  EROFS: ["config", "it is on a read-only file system: choose a folder that can be written"],
  ENOSPC: NO_SPACE,
  EDQUOT: NO_SPACE,
  EMFILE: TOO_MANY_FILES,
  ENFILE: TOO_MANY_FILES,
  ENOTDIR: ["config", "a part of its path is not a folder: correct the path"],
  ENOENT: ["config", "its folder is gone, or cannot be made there: restore it, or correct the path"],
};

/** `place` names the store and its path: "the file store in './leases'". */
export function fileFailure(place: string, error: unknown, outcome: FailedOutcome): StoreError {
  if (error instanceof StoreError) return error;
  if (error instanceof FolderLockError) return lockFailure(error);
  const said = String((error as Error)?.message ?? error);
  const [kind, text] = BY_CODE[codeOf(error) ?? ""] ?? ["internal", `${said}: check the disk`];
  return new StoreError(kind, `${place}: ${text}`, { outcome, cause: error });
}

/** Without the lock nothing was written; with a lost one somebody else may have written, too. */
function lockFailure(error: FolderLockError): StoreError {
  return error.kind === "held"
    ? new StoreError("timeout", error.message, { outcome: "not-applied", cause: error })
    : new StoreError("internal", error.message, { outcome: "unknown", cause: error });
}
