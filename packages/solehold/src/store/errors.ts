/** Whether the writes of a failed call can have happened. */
export type FailedOutcome = "not-applied" | "unknown";

/**
 * "data-loss": this client saw acknowledged data that is gone (a failover, a restored backup, a flush). It is
 * thrown once for each loss; afterwards the client works on what is there. "conflict": the server answered that another
 * write got in the way, which does not prove that a copy of this one will not arrive.
 */
export type StoreErrorKind =
  | "unreachable"
  | "timeout"
  | "auth"
  | "config"
  | "conflict"
  | "full"
  | "closed"
  | "data-loss"
  | "internal";

/** The store could not do its work. The message is one line and says what to do about it. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly kind: StoreErrorKind;
  readonly outcome: FailedOutcome;

  constructor(kind: StoreErrorKind, message: string, options: { outcome: FailedOutcome; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.outcome = options.outcome;
  }
}

/** Any failure as a StoreError. `what` and `outcome` are for errors that are none yet. */
export function asStoreError(error: unknown, what: string, outcome: FailedOutcome): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError("internal", `${what}: ${String(error)}`, { outcome, cause: error });
}
