/** The errors of redlock 5 and the statistics that they carry, as its callers know them. There is one voter: the store. */

export interface ExecutionStats {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: Set<unknown>;
  readonly votesAgainst: Map<unknown, Error>;
}

export interface ExecutionResult {
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;
}

/** Somebody else has one of the resources, or had it before the lock was released. */
export class ResourceLockedError extends Error {
  override readonly name = "ResourceLockedError";

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
  }
}

/** What an operation ends with that did not succeed; `cause` is the error of Solehold, which says more. */
export class ExecutionError extends Error {
  override readonly name = "ExecutionError";
  readonly attempts: ExecutionResult["attempts"];

  constructor(message: string, attempts: ExecutionResult["attempts"], cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.attempts = attempts;
  }
}

export function statsOf(client: unknown, against: Error | null): ExecutionStats {
  return {
    membershipSize: 1,
    quorumSize: 1,
    votesFor: new Set(against === null ? [client] : []),
    votesAgainst: new Map(against === null ? [] : [[client, against]]),
  };
}
