/**
 * A failure on its way to the user: one line that names what is wrong and the fix, an exit code, and for
 * `--json` a stable code with details. Commands throw it; `main` prints it.
 */
import { EXIT } from "./exit-codes.ts";

export interface FailureDetails {
  readonly exitCode: number;
  /** Stable, for scripts: LEASE_HELD, USAGE, STORE_UNAVAILABLE. */
  readonly code: string;
  /** More for scripts. Never a token. */
  readonly facts?: { readonly [name: string]: string | number | boolean | null };
}

export class Failure extends Error {
  override readonly name = "Failure";
  readonly details: FailureDetails;

  constructor(message: string, details: FailureDetails) {
    super(message);
    this.details = details;
  }
}

/** The command line is wrong: the message names the option and the fix. */
export function usageFailure(message: string): Failure {
  return new Failure(message, { exitCode: EXIT.usage, code: "USAGE" });
}

/** Errors of other libraries may have many lines; people and log collectors want one. */
export function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " ").trim();
}
