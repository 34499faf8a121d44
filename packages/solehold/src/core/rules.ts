/**
 * The rules about leases: whether a command that is well-formed is eligible on this record, and if not, the first rule that
 * stands against it. One function for each kind of caller: who wants the lease, who has it, and who operates it.
 */
import type { AcquireCommand, LeaseCommand, RenewCommand } from "./command.ts";
import { MAX_U64 } from "./fence.ts";
import type { FieldProblem } from "./field-problem.ts";
import { nextGeneration } from "./generation.ts";
import { findMark } from "./idempotency.ts";
import { NO_TOKEN_HASH } from "./identifiers.ts";
import type { StoreInstant } from "./instant.ts";
import type { LeasePolicy } from "./policy.ts";
import type { Reason } from "./reasons.ts";
import { claimableFrom, type LeaseRecord } from "./record.ts";
import type { LeaseSnapshot } from "./snapshot.ts";
import { wantedTtlMs } from "./ttl.ts";

/** What an eligible request leads to. */
export type DecisionPath = "grant" | "extend" | "terminate" | "annotate" | "replay" | "unchanged";

export interface Verdict {
  readonly reason: Reason;
  readonly path: DecisionPath | null;
}

export interface Facts {
  /** A lease is there, live or expired: not a tombstone, not nothing. */
  readonly leaseExists: boolean;
  readonly leaseExpired: boolean;
  readonly ownerMatch: boolean;
  readonly tokenMatch: boolean;
}

/** What `evaluatePolicy` found of a request against a snapshot. */
export interface PolicyBundle extends Facts {
  readonly ttlInBounds: boolean;
  readonly grantEligible: boolean;
  /** OK_POLICY_EVALUATE when eligible, otherwise the first rule that stands against it. */
  readonly reason: Reason;
  readonly path: DecisionPath | null;
  /** The field and the fix, when the request could not be decided. */
  readonly problem: FieldProblem | null;
}

/** What is true of a request that cannot be decided. */
export const NOTHING_TRUE = Object.freeze({
  leaseExists: false,
  leaseExpired: false,
  ownerMatch: false,
  tokenMatch: false,
  ttlInBounds: false,
  grantEligible: false,
});

const ELIGIBLE = {
  grant: { reason: "OK_POLICY_EVALUATE", path: "grant" },
  extend: { reason: "OK_POLICY_EVALUATE", path: "extend" },
  terminate: { reason: "OK_POLICY_EVALUATE", path: "terminate" },
  annotate: { reason: "OK_POLICY_EVALUATE", path: "annotate" },
  replay: { reason: "OK_POLICY_EVALUATE", path: "replay" },
  unchanged: { reason: "OK_POLICY_EVALUATE", path: "unchanged" },
} as const satisfies Record<DecisionPath, Verdict>;

function deny(reason: Reason): Verdict {
  return { reason, path: null };
}

export function judge(
  command: LeaseCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
  facts: Facts,
): Verdict {
  const { record, violation = null } = snapshot;
  if (violation?.kind === "lost-writes" && policy.release !== "delete") {
    // A holder whose record is gone did not release it: it learns that the store lost it.
    if (command.op === "acquire" || (command.op === "renew" && record === null))
      return deny("FENCE_WENT_BACK");
  }
  if (record !== null && isFenced(command, record, policy)) return deny("LEASE_FENCED");
  const replay = record === null ? null : judgeReplay(command, record, now, facts);
  if (replay !== null) return replay;
  switch (command.op) {
    case "acquire":
      return judgeAcquire(command, snapshot, now, policy, facts);
    case "revoke":
    case "break":
      return judgeOperator(command, record, now, facts);
    default:
      return judgeOwner(command, record, now, policy, facts);
  }
}

/**
 * An acquire behind the record's term comes from a deposed holder. A renewal that names a term speaks of a
 * grant under exactly that term; one that names none speaks of its own grant, whatever its term was.
 */
function isFenced(command: LeaseCommand, record: LeaseRecord, policy: LeasePolicy): boolean {
  if (command.op === "acquire") return (command.term ?? policy.baseTerm) < record.term;
  return command.op === "renew" && command.term !== undefined && command.term !== record.term;
}

/**
 * The same idempotency key again: the same answer for the same arguments, a refusal for others. An answer
 * that says "you hold it" is only repeated while that is so; null leaves the command to the usual rules.
 */
function judgeReplay(
  command: LeaseCommand,
  record: LeaseRecord,
  now: StoreInstant,
  facts: Facts,
): Verdict | null {
  if (command.idempotency === undefined) return null;
  const mark = findMark(record, command.idempotency.keyHash);
  if (mark === null) return null;
  const same = mark.op === command.op && mark.fingerprint === command.idempotency.fingerprint;
  if (!same) return deny("IDEMPOTENCY_KEY_REUSED");
  const live = record.state === "held" && now.latestMs < record.expiresAtMs;
  const owned = facts.ownerMatch && (facts.tokenMatch || isReleasedAgain(command, record));
  switch (command.op) {
    case "acquire":
      if (!facts.ownerMatch) return deny("IDEMPOTENCY_KEY_REUSED");
      // The first answer was this grant. If it has ended since, repeating it must not grant a second one.
      if (record.state === "revoked") return deny("LEASE_REVOKED");
      if (record.state === "released") return deny("LEASE_NOT_FOUND");
      return live ? ELIGIBLE.replay : deny("LEASE_EXPIRED");
    case "revoke":
    case "break":
      return ELIGIBLE.replay;
    case "release":
    case "handoff":
      return owned && record.state === "released" ? ELIGIBLE.replay : null;
    default:
      return owned && live ? ELIGIBLE.replay : null;
  }
}

function judgeAcquire(
  command: AcquireCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
  facts: Facts,
): Verdict {
  const { record } = snapshot;
  const replace = (): Verdict =>
    nextGeneration(snapshot, now, policy) > MAX_U64 ? deny("FENCE_EXHAUSTED") : ELIGIBLE.grant;
  const grant = (): Verdict => {
    if (isUsedUp(command, record, now, policy)) return deny("QUORUM_NOT_MET");
    return command.quotaExhausted === true ? deny("CAPACITY_EXCEEDED") : replace();
  };
  if (record === null) return grant();
  if (record.state === "revoked") {
    return facts.leaseExpired || policy.revoked === "claim-at-once" ? grant() : deny("LEASE_REVOKED");
  }
  if (record.state === "released") {
    const { handoff, reservation } = record;
    if (handoff !== null && now.earliestMs < handoff.deadlineMs) {
      return handoff.successor === command.holder ? grant() : deny("LEASE_HANDOFF_PENDING");
    }
    if (now.earliestMs < (record.minHoldUntilMs ?? 0)) return deny("LEASE_LOCK_DELAY");
    const isForAnother = reservation !== null && reservation.ticket !== command.ticket;
    return isForAnother && now.earliestMs < reservation.deadlineMs ? deny("LEASE_RESERVED") : grant();
  }
  if (facts.leaseExpired) return now.earliestMs < claimableFrom(record) ? deny("LEASE_LOCK_DELAY") : grant();
  if (!facts.ownerMatch) return deny("LEASE_HELD_BY_OTHER");
  const replaced = (): Verdict => (isBroken(record, now) ? deny("LEASE_BREAKING") : replace());
  if (policy.reacquire === "supersede") return replaced();
  const proven = facts.tokenMatch && now.latestMs < record.expiresAtMs;
  if (!proven) return deny("LEASE_HELD_BY_SELF");
  // The token proves that this is the very holder: it keeps its grant, prolonged, with the same fence,
  // unless it asks for what that grant is not. A newer term needs a newer fence.
  if (command.purpose !== record.purpose) return deny("LEASE_PURPOSE_MISMATCH");
  return (command.term ?? policy.baseTerm) > record.term ? replaced() : ELIGIBLE.extend;
}

/**
 * Whether the approvals of an acquire may already have led to a grant. The absence of a record proves little: it may have
 * been deleted on release, or collected long after its end.
 */
function isUsedUp(
  { approval }: AcquireCommand,
  record: LeaseRecord | null,
  now: StoreInstant,
  policy: LeasePolicy,
): boolean {
  if (approval?.kind !== "used-before") return false;
  if (record !== null) return record.generation !== approval.generation;
  const isLate = now.latestMs >= approval.atMs + policy.maxTtlMs;
  return approval.generation !== 0n || policy.release === "delete" || isLate;
}

/** Once nothing could prolong it any more, saying so beats pretending. */
function isBroken(record: LeaseRecord, now: StoreInstant): boolean {
  return record.breakAtMs !== null && record.breakAtMs <= Math.max(record.expiresAtMs, now.latestMs);
}

function judgeOperator(
  command: LeaseCommand & { readonly op: "revoke" | "break" },
  record: LeaseRecord | null,
  now: StoreInstant,
  facts: Facts,
): Verdict {
  if (record === null) return deny("LEASE_NOT_FOUND");
  // A key that is closed to others after its release must be possible to open before the time is up.
  const isClosed = now.earliestMs < claimableFrom(record);
  if (!facts.leaseExists && !(command.op === "revoke" && isClosed)) return deny("LEASE_NOT_FOUND");
  const { approval } = command;
  // A repeat speaks of the grant that its first attempt found.
  const generation =
    command.generation ?? (approval?.kind === "used-before" ? approval.generation : record.generation);
  if (generation !== record.generation) return deny("LEASE_GENERATION_STALE");
  if (record.state === "revoked") return deny("LEASE_ALREADY_REVOKED");
  return command.op === "revoke" ? ELIGIBLE.terminate : ELIGIBLE.annotate;
}

type OwnerOp = Exclude<LeaseCommand, AcquireCommand | { readonly op: "revoke" | "break" }>;

function judgeOwner(
  command: OwnerOp,
  record: LeaseRecord | null,
  now: StoreInstant,
  policy: LeasePolicy,
  facts: Facts,
): Verdict {
  if (record === null) return deny("LEASE_NOT_FOUND");
  if (command.op === "release" && command.onlyNonce !== undefined && command.onlyNonce !== record.nonce) {
    return deny("LEASE_NOT_FOUND");
  }
  if (record.state === "released") {
    // Releasing twice is not an error: the second finds what the first did.
    return command.op === "release" &&
      facts.ownerMatch &&
      (facts.tokenMatch || isReleasedAgain(command, record))
      ? ELIGIBLE.unchanged
      : deny("LEASE_NOT_FOUND");
  }
  if (!facts.ownerMatch) return deny("LEASE_HELD_BY_OTHER");
  if (!facts.tokenMatch)
    return deny(policy.proof === "token" ? "LEASE_TOKEN_INVALID" : "LEASE_GENERATION_STALE");
  // The holder of a revoked or expired lease may still say that it stopped: nobody else has it yet.
  if (command.op === "release") return ELIGIBLE.terminate;
  if (record.state === "revoked") return deny("LEASE_REVOKED");
  if (facts.leaseExpired) {
    const tolerated = command.op === "renew" && policy.renewExpired === "if-unclaimed";
    if (!tolerated) return deny("LEASE_EXPIRED");
  }
  switch (command.op) {
    case "renew":
      if (isBeyondApproval(command, record, policy)) return deny("LEASE_TTL_OUT_OF_BOUNDS");
      return isBroken(record, now) ? deny("LEASE_BREAKING") : ELIGIBLE.extend;
    case "use":
      if (command.purpose !== record.purpose) return deny("LEASE_PURPOSE_MISMATCH");
      return record.resumeRequired ? deny("LEASE_RESUME_REQUIRED") : ELIGIBLE.unchanged;
    case "resume":
      return record.resumeRequired ? ELIGIBLE.annotate : ELIGIBLE.unchanged;
    case "handoff":
      return ELIGIBLE.terminate;
  }
}

/** A release cleared the token, so its repetition has nothing to prove; it changes nothing either. */
function isReleasedAgain(command: LeaseCommand, record: LeaseRecord): boolean {
  if (command.op !== "release" || record.state !== "released" || record.tokenHash !== NO_TOKEN_HASH)
    return false;
  return command.generation === undefined || command.generation === record.generation;
}

function isBeyondApproval(command: RenewCommand, record: LeaseRecord, policy: LeasePolicy): boolean {
  const { approval } = command;
  if (approval?.kind !== "approved-ttl-only") return false;
  const { maxTtlMs = policy.maxTtlMs } = approval;
  return wantedTtlMs(command, record, policy) > Math.min(record.ttlMs, maxTtlMs);
}
