/**
 * A failure on its way to the user: one line that names what is wrong and the fix, an exit code, and for
 * `--json` a stable code with details. Actions throw it; `main` prints it.
 */

/** What a caller's script may rely on. Part of the public contract, like the output of `--json`. */
export const EXIT = Object.freeze({
  ok: 0,
  /** The store, the machine or the rules stand against it. */
  error: 1,
  /** The command line itself is wrong. */
  usage: 2,
  /** Another holder has the lease. Nothing is broken. */
  held: 3,
  /** The lease is over for its holder. */
  lost: 4,
  /** The store lost data that it had acknowledged: leases of others may be missing. */
  dataLoss: 5,
  /** As shells say it: the command was found but cannot be run, or was not found. */
  cannotRun: 126,
  notFound: 127,
});

/** Shells report a process that died by a signal as 128 + its number. */
export const SIGNAL_EXIT_BASE = 128;

export interface FailureDetails {
  readonly exitCode: number;
  /** Stable, for scripts: LEASE_HELD, USAGE, STORE_UNAVAILABLE. */
  readonly code: string;
  /** More for scripts. Never a token. */
  readonly facts?: FailureFacts;
}

export type FailureFacts = { readonly [name: string]: string | number | boolean | null };

export class Failure extends Error {
  override readonly name = "Failure";
  readonly details: FailureDetails;

  /** Errors of other libraries may have many lines; people and log collectors want one. */
  constructor(message: string, details: FailureDetails) {
    super(message.replace(/\s*\n\s*/g, " ").trim());
    this.details = details;
  }
}

/** The command line is wrong: the message names the option and the fix. */
export function usageFailure(message: string): Failure {
  return new Failure(message, { exitCode: EXIT.usage, code: "USAGE" });
}

/** The command line is right, and it did not work. */
export function errorFailure(code: string, message: string, facts: FailureFacts = {}): Failure {
  return new Failure(message, { exitCode: EXIT.error, code, facts });
}
