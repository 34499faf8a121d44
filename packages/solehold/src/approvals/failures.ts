/**
 * Why approvals did not count: each failure has a kind, a stable code and the signer it concerns. The list is
 * ordered and free of repeats, so that the same approvals in any order give the same list, and bounded, so
 * that a flood of bad approvals cannot make a large answer. Whether the quorum was missed is never cut off.
 */
import type { FieldProblem } from "../core/index.ts";
import { compareUtf8 } from "../placement/names.ts";

export const MAX_FAILURES = 256;

/** Why a signature does not count: not a signature at all, one of something else, or one of too many. */
export type SignatureFault = "malformed" | "mismatch" | "too-many";

/** By kind, in the order in which kinds are listed. */
const CODES = {
  InvalidRequest: "LC_INVALID_REQUEST",
  UnknownSigner: "LC_UNKNOWN_SIGNER",
  InvalidSignature: "LC_INVALID_SIGNATURE",
  KeyNotValid: "LC_KEY_NOT_VALID",
  ApprovalNotYetValid: "LC_APPROVAL_NOT_YET_VALID",
  ApprovalExpired: "LC_APPROVAL_EXPIRED",
  ApprovalReplayed: "LC_APPROVAL_REPLAYED",
  BelowQuorum: "LC_BELOW_QUORUM",
} as const;
const KINDS = Object.keys(CODES);

export type FailureKind = keyof typeof CODES;

interface Failure<Kind extends FailureKind> {
  readonly kind: Kind;
  readonly code: (typeof CODES)[Kind];
}

interface SignerFailure<Kind extends FailureKind> extends Failure<Kind> {
  readonly signerId: string;
}

export type VerificationFailure =
  | (Failure<"InvalidRequest"> & { readonly problem: FieldProblem })
  | SignerFailure<"UnknownSigner">
  | (SignerFailure<"InvalidSignature"> & { readonly fault: SignatureFault })
  | SignerFailure<"KeyNotValid">
  | (SignerFailure<"ApprovalNotYetValid"> & { readonly notBeforeMs: number })
  | (SignerFailure<"ApprovalExpired"> & { readonly notAfterMs: number })
  | SignerFailure<"ApprovalReplayed">
  | (Failure<"BelowQuorum"> & { readonly required: number; readonly received: number });

export interface FailureList {
  readonly failures: readonly VerificationFailure[];
  /** How many distinct failures the bound left out. */
  readonly omitted: number;
}

/** Orders, removes repeats, and cuts to `MAX_FAILURES`, keeping `belowQuorum` as the last. */
export function listFailures(
  found: readonly VerificationFailure[],
  belowQuorum: Extract<VerificationFailure, { kind: "BelowQuorum" }> | null,
): FailureList {
  const sorted = [...found].sort(compareFailures);
  const distinct = sorted.filter((failure, index) => {
    const previous = sorted[index - 1];
    return previous === undefined || compareFailures(previous, failure) !== 0;
  });
  const kept = distinct.slice(0, belowQuorum === null ? MAX_FAILURES : MAX_FAILURES - 1);
  const omitted = distinct.length - kept.length;
  return { failures: Object.freeze(belowQuorum === null ? kept : [...kept, belowQuorum]), omitted };
}

/** One sentence for people. Holds ids and instants only. */
export function describeFailure(failure: VerificationFailure): string {
  switch (failure.kind) {
    case "InvalidRequest":
      return `the request cannot be verified: ${failure.problem.field} ${failure.problem.message}`;
    case "UnknownSigner":
      return `${failure.signerId} is not a signer of this quorum`;
    case "InvalidSignature":
      return `${failure.signerId}: ${SIGNATURE_FAULTS[failure.fault]}`;
    case "KeyNotValid":
      return `${failure.signerId} signed with a key that is not in force now`;
    case "ApprovalNotYetValid":
      return `the approval of ${failure.signerId} is valid from ${instant(failure.notBeforeMs)} on`;
    case "ApprovalExpired":
      return `the approval of ${failure.signerId} expired at ${instant(failure.notAfterMs)}`;
    case "ApprovalReplayed":
      return `the approval of ${failure.signerId} was used before`;
    case "BelowQuorum":
      return `${failure.required} approvals are required, ${failure.received} count`;
  }
}

const SIGNATURE_FAULTS: { readonly [fault in SignatureFault]: string } = {
  malformed:
    "the approval is not well formed (signature: 86 characters of unpadded base64url; window: whole ms)",
  mismatch: "the signature does not sign this request",
  "too-many": "too many different approvals from one signer",
};

function compareFailures(a: VerificationFailure, b: VerificationFailure): number {
  const byKind = KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind);
  return byKind || compareUtf8(subject(a), subject(b)) || detail(a) - detail(b);
}

/** What orders failures of one kind, and tells two of one signer apart. */
function subject(failure: VerificationFailure): string {
  if (failure.kind === "BelowQuorum") return "";
  if (failure.kind === "InvalidRequest") return failure.problem.field;
  return failure.kind === "InvalidSignature" ? `${failure.signerId}\n${failure.fault}` : failure.signerId;
}

function detail(failure: VerificationFailure): number {
  if (failure.kind === "ApprovalNotYetValid") return failure.notBeforeMs;
  return failure.kind === "ApprovalExpired" ? failure.notAfterMs : 0;
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}
