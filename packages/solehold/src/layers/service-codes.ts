/**
 * The lease service's own codes, as its callers know them. They are a view of core's reasons: which
 * reason is given is decided in core, and only its name for this service is chosen here.
 */
import type { LeaseOp, Reason } from "../core/index.ts";
import type { CommandOutcome } from "../executor/index.ts";

export type LeaseServiceCode =
  | "LS_OK"
  | "LS_EXPIRED"
  | "LS_STALE_USE"
  | "LS_ALREADY_REVOKED"
  | "LS_PURPOSE_MISMATCH"
  | "LS_NOT_FOUND"
  | "LS_CAPACITY_EXCEEDED"
  | "LS_HELD"
  | "LS_TOKEN_INVALID"
  | "LS_RESUME_REQUIRED"
  | "LS_QUORUM_NOT_MET"
  | "LS_FENCED"
  | "LS_CORRUPT"
  | "LS_INVALID"
  | "LS_UNAVAILABLE";

const BY_REASON: { readonly [reason in Reason]?: LeaseServiceCode } = {
  OK_DECISION_COMPUTE: "LS_OK",
  LEASE_HELD_BY_OTHER: "LS_HELD",
  LEASE_HELD_BY_SELF: "LS_HELD",
  LEASE_HANDOFF_PENDING: "LS_HELD",
  LEASE_TOKEN_INVALID: "LS_TOKEN_INVALID",
  LEASE_NOT_FOUND: "LS_NOT_FOUND",
  LEASE_EXPIRED: "LS_EXPIRED",
  LEASE_BREAKING: "LS_EXPIRED",
  LEASE_GENERATION_STALE: "LS_EXPIRED",
  LEASE_REVOKED: "LS_ALREADY_REVOKED",
  LEASE_ALREADY_REVOKED: "LS_ALREADY_REVOKED",
  LEASE_PURPOSE_MISMATCH: "LS_PURPOSE_MISMATCH",
  LEASE_RESUME_REQUIRED: "LS_RESUME_REQUIRED",
  LEASE_FENCED: "LS_FENCED",
  FENCE_EXHAUSTED: "LS_FENCED",
  FENCE_WENT_BACK: "LS_FENCED",
  QUORUM_NOT_MET: "LS_QUORUM_NOT_MET",
  CAPACITY_EXCEEDED: "LS_CAPACITY_EXCEEDED",
  RECORD_CORRUPT: "LS_CORRUPT",
};

/** Using a lease that is gone is stale, however it went: unknown, revoked, expired or taken over. */
const STALE_WHEN_USED: ReadonlySet<Reason> = new Set<Reason>([
  "LEASE_NOT_FOUND",
  "LEASE_REVOKED",
  "LEASE_EXPIRED",
  "LEASE_GENERATION_STALE",
  "LEASE_HELD_BY_OTHER",
]);

/** How the service names the outcome of a command. */
export function serviceCodeOf(op: LeaseOp, outcome: CommandOutcome): LeaseServiceCode {
  if (outcome.kind === "applied") return "LS_OK";
  return outcome.kind === "refused" ? serviceCode(op, outcome.decision.reason) : "LS_UNAVAILABLE";
}

export function serviceCode(op: LeaseOp, reason: Reason): LeaseServiceCode {
  if (op === "use" && STALE_WHEN_USED.has(reason)) return "LS_STALE_USE";
  // A key in another's hands after one's own grant means that one's own had run out first.
  if (op === "renew" && reason === "LEASE_HELD_BY_OTHER") return "LS_EXPIRED";
  return BY_REASON[reason] ?? "LS_INVALID";
}
