/** What goes wrong in the folder of the file store, as StoreErrors. */
import { type FailedOutcome, StoreError } from "../../store/index.ts";
import * as support from "../support/file-failure.ts";

export function configProblem(message: string, cause?: unknown): StoreError {
  return new StoreError("config", message, { outcome: "not-applied", cause });
}

export function fileFailure(folder: string, error: unknown, outcome: FailedOutcome): StoreError {
  return support.fileFailure(`the file store in '${folder}'`, error, outcome);
}
