/** What the lease service of document 000 answers with besides leases: its decisions and its errors. */
import type { LeaseServiceCode, Purpose, PurposeMismatch } from "../core/index.ts";

/** One attempt, allowed or not. */
export interface LeaseDecision {
  readonly leaseId: string;
  /** grant, renew, use, revoke. */
  readonly action: string;
  readonly allowed: boolean;
  readonly reason: string;
  readonly traceId: string;
  /** ISO 8601, by the store's clock. */
  readonly timestamp: string;
  /** LS_OK, or the code of the error. */
  readonly code: string;
  /** PurposeMismatch only: the purpose that the use required. */
  readonly expected?: Purpose;
  /** PurposeMismatch only: the purpose of the lease. */
  readonly actual?: Purpose;
}

/** The document's four, and what else can stand in the way. */
export type LeaseServiceErrorKind =
  | "Expired"
  | "StaleUse"
  | "AlreadyRevoked"
  | "PurposeMismatch"
  | "NotFound"
  | "CapacityExceeded"
  | "Refused";

const KINDS: { readonly [code in LeaseServiceCode]?: LeaseServiceErrorKind } = {
  LS_EXPIRED: "Expired",
  LS_STALE_USE: "StaleUse",
  LS_ALREADY_REVOKED: "AlreadyRevoked",
  LS_PURPOSE_MISMATCH: "PurposeMismatch",
  LS_NOT_FOUND: "NotFound",
  LS_CAPACITY_EXCEEDED: "CapacityExceeded",
};

/** The document's LeaseError. */
export class LeaseServiceError extends Error {
  override readonly name = "LeaseServiceError";
  readonly kind: LeaseServiceErrorKind;
  readonly code: LeaseServiceCode;
  readonly leaseId: string;
  /** PurposeMismatch only: the purpose that the use required. */
  readonly expected: Purpose | null;
  /** PurposeMismatch only: the purpose of the lease. */
  readonly actual: Purpose | null;

  constructor(
    code: LeaseServiceCode,
    leaseId: string,
    sentence: string,
    mismatch: PurposeMismatch | null = null,
  ) {
    const purposes = mismatch === null ? "" : ` (required ${mismatch.expected}, granted ${mismatch.actual})`;
    super(`${code} ${leaseId}: ${sentence}${purposes}`);
    this.kind = KINDS[code] ?? "Refused";
    this.code = code;
    this.leaseId = leaseId;
    this.expected = mismatch?.expected ?? null;
    this.actual = mismatch?.actual ?? null;
  }
}
