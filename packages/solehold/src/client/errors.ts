/**
 * The errors that users meet. One base with a stable `code`; "held by somebody" and "the store is broken"
 * are never the same error, and every failed write says whether it may have happened.
 */
import { keyId, type LeaseKey, type LossByDecision, REASONS, type Reason } from "../core/index.ts";

export type LeaseErrorCode =
  | "LEASE_HELD"
  | "LEASE_TIMEOUT"
  | "LEASE_LOST"
  | "LEASE_UNAVAILABLE"
  | "LEASE_REFUSED"
  | "LEASE_DENIED"
  | "LEASES_CLOSED"
  | "STALE_FENCE";

/** What became of the write: it happened, it certainly did not, or nobody knows. */
export type WriteOutcome = "applied" | "not-applied" | "unknown";

export interface LeaseErrorDetails {
  readonly code: LeaseErrorCode;
  readonly key: LeaseKey;
  /** Default false. */
  readonly retryable?: boolean;
  /** Default "not-applied". */
  readonly outcome?: WriteOutcome;
  readonly cause?: unknown;
}

export class LeaseError extends Error {
  override readonly name: string = "LeaseError";
  readonly code: LeaseErrorCode;
  readonly key: LeaseKey;
  /** Whether the same call may succeed later without any change. */
  readonly retryable: boolean;
  readonly outcome: WriteOutcome;

  constructor(message: string, details: LeaseErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.key = details.key;
    this.retryable = details.retryable ?? false;
    this.outcome = details.outcome ?? "not-applied";
  }

  /** For loggers and queues that keep errors as JSON, which has no number as large as a fence. */
  toJSON(): Record<string, unknown> {
    const { name, message, stack } = this;
    const fields = Object.entries(this).map(([field, value]) => [
      field,
      typeof value === "bigint" ? String(value) : value,
    ]);
    return { ...Object.fromEntries(fields), name, message, stack };
  }
}

export interface HeldDetails {
  readonly key: LeaseKey;
  readonly reason: Reason;
  readonly holder: string | null;
  /** When it is worth trying again, in milliseconds from now; null when nobody can say. */
  readonly retryAfterMs: number | null;
}

/** Somebody else has it. Nothing is broken. */
export class LeaseHeldError extends LeaseError {
  override readonly name: string = "LeaseHeldError";
  readonly reason: Reason;
  readonly holder: string | null;
  readonly retryAfterMs: number | null;

  constructor(details: HeldDetails, message?: string, code: "LEASE_HELD" | "LEASE_TIMEOUT" = "LEASE_HELD") {
    super(message ?? heldMessage(details), { code, key: details.key, retryable: true });
    this.reason = details.reason;
    this.holder = details.holder;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** Still held by somebody else after the whole wait. */
export class LeaseTimeoutError extends LeaseHeldError {
  override readonly name = "LeaseTimeoutError";
  readonly waitedMs: number;

  constructor(details: HeldDetails, waitedMs: number) {
    super(details, `${heldMessage(details)}; waited ${Math.round(waitedMs)} ms`, "LEASE_TIMEOUT");
    this.waitedMs = waitedMs;
  }
}

/** The store could not be asked or did not answer. `outcome` says whether the request may have taken effect. */
export class LeaseUnavailableError extends LeaseError {
  override readonly name = "LeaseUnavailableError";

  constructor(key: LeaseKey, outcome: "not-applied" | "unknown", cause: Error) {
    const hint = outcome === "unknown" ? " (it may have taken effect: repeating the call is safe)" : "";
    super(`the lease store did not serve ${keyId(key)}: ${cause.message}${hint}`, {
      code: "LEASE_UNAVAILABLE",
      key,
      retryable: true,
      outcome,
      cause,
    });
  }
}

/** The request itself is wrong: the message names the field and the fix. */
export class LeaseRefusedError extends LeaseError {
  override readonly name = "LeaseRefusedError";
  readonly reason: Reason;
  readonly field: string;

  constructor(key: LeaseKey, reason: Reason, field: string, message: string) {
    super(`${field} ${message}`, { code: "LEASE_REFUSED", key });
    this.reason = reason;
    this.field = field;
  }
}

/** A well-formed request that the rules do not allow (revoking what is not there, say). */
export class LeaseDeniedError extends LeaseError {
  override readonly name = "LeaseDeniedError";
  readonly reason: Reason;

  constructor(key: LeaseKey, reason: Reason) {
    super(`${keyId(key)}: ${REASONS[reason].sentence} (${reason})`, { code: "LEASE_DENIED", key });
    this.reason = reason;
  }
}

/** Why a lease ended for its holder: see LeaseLostError. */
export type LossReason = LossByDecision | "unreachable" | "abandoned" | "closed";

/**
 * The lease has ended for its holder. Its `reason` is "expired" when its time ran out here (a pause, a suspend),
 * "unreachable" when its time ran out because the store did not answer, "store-lost-data" when the store lost writes, so that
 * somebody else may be granted the lease, "revoked" or "superseded" when the store says so, and "released", "abandoned" or
 * "closed" when the holder itself ended it.
 */
export class LeaseLostError extends LeaseError {
  override readonly name = "LeaseLostError";
  readonly reason: LossReason;
  readonly fence: bigint;

  constructor(key: LeaseKey, reason: LossReason, fence: bigint) {
    super(`the lease ${keyId(key)} (fence ${fence}) is over: ${reason}`, { code: "LEASE_LOST", key });
    this.reason = reason;
    this.fence = fence;
  }
}

/** This `Leases` object was closed: it grants, waits and elects no more. */
export class LeasesClosedError extends LeaseError {
  override readonly name = "LeasesClosedError";

  constructor(key: LeaseKey) {
    super(`${keyId(key)} cannot be served: leases.close() was called`, { code: "LEASES_CLOSED", key });
  }
}

function heldMessage(details: HeldDetails): string {
  const by = details.holder === null ? `not available (${details.reason})` : `held by ${details.holder}`;
  const until =
    details.retryAfterMs === null ? "" : `, at most for another ${Math.ceil(details.retryAfterMs)} ms`;
  return `${keyId(details.key)} is ${by}${until}`;
}
