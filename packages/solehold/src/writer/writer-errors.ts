/** What can go wrong with a writer lease. The kind says who has to do something about it. */
import type { WriterLease } from "./writer-lease.ts";

export type BackendErrorKind =
  | "Transport"
  | "Auth"
  | "NotFound"
  | "PreconditionFailed"
  | "Config"
  | "Internal";

export type WriterLeaseFailure =
  | { readonly kind: "Backend"; readonly backend: BackendErrorKind }
  /** Another holder has it, and it has not expired. */
  | { readonly kind: "Held"; readonly current: WriterLease; readonly nowMs: number }
  /** Somebody else was quicker. */
  | { readonly kind: "LostRace"; readonly attemptedHolder: string; readonly observed: WriterLease | null }
  | { readonly kind: "InvalidFormat" }
  /** The lease that was to be refreshed or released is not the one that is there. */
  | {
      readonly kind: "Stale";
      readonly attemptedHolder: string;
      readonly attemptedGeneration: bigint;
      readonly observed: WriterLease | null;
    }
  /** A newer term exists: this writer was deposed. */
  | {
      readonly kind: "Fenced";
      readonly attemptedHolder: string;
      readonly attemptedTerm: bigint;
      readonly currentTerm: bigint;
    };

export class WriterLeaseError extends Error {
  override readonly name = "WriterLeaseError";
  readonly failure: WriterLeaseFailure;

  constructor(failure: WriterLeaseFailure, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.failure = failure;
  }

  get kind(): WriterLeaseFailure["kind"] {
    return this.failure.kind;
  }
}

export function heldError(current: WriterLease, nowMs: number): WriterLeaseError {
  const leftMs = Math.max(0, current.expiresAtMs - nowMs);
  const message = `the writer lease of ${current.databaseKey} is held by ${current.holderId} (generation ${current.generation}) for another ${leftMs} ms`;
  return new WriterLeaseError({ kind: "Held", current, nowMs }, message);
}

export function lostRaceError(attemptedHolder: string, observed: WriterLease | null): WriterLeaseError {
  const winner =
    observed === null
      ? "the lease is gone again"
      : `${observed.holderId} (generation ${observed.generation}) won`;
  return new WriterLeaseError(
    { kind: "LostRace", attemptedHolder, observed },
    `${attemptedHolder} lost the race for the writer lease: ${winner}`,
  );
}

export function staleError(lease: WriterLease, observed: WriterLease | null): WriterLeaseError {
  const { holderId: attemptedHolder, generation: attemptedGeneration } = lease;
  const there =
    observed === null ? "there is none" : `it is ${observed.holderId}'s (generation ${observed.generation})`;
  return new WriterLeaseError(
    { kind: "Stale", attemptedHolder, attemptedGeneration, observed },
    `the writer lease of ${lease.databaseKey} is no longer ${attemptedHolder}'s (generation ${attemptedGeneration}): ${there}`,
  );
}

export function fencedError(
  attemptedHolder: string,
  attemptedTerm: bigint,
  currentTerm: bigint,
): WriterLeaseError {
  return new WriterLeaseError(
    { kind: "Fenced", attemptedHolder, attemptedTerm, currentTerm },
    `${attemptedHolder} is on term ${attemptedTerm}, behind the current term ${currentTerm}: stop writing`,
  );
}
