/**
 * The first of the two steps of a decision: what is true of this request against this snapshot.
 *
 * Two times are asked of the interval: a lease of ANOTHER is over only when even the earliest possible
 * store time says so; the caller's OWN lease counts as alive only when even the latest says so. Every
 * comparison is half-open: dead at exactly expiresAtMs.
 */
import { isSnapshotProblem, keyIncoherence, snapshotIncoherence } from "./coherence.ts";
import {
  type AcquireCommand,
  type ApprovalVerdict,
  commandProblem,
  handoffProblem,
  type LeaseCommand,
  type RenewCommand,
} from "./command.ts";
import { MAX_U64 } from "./fence.ts";
import { nextGeneration } from "./generation.ts";
import { findMark } from "./idempotency.ts";
import { equalInConstantTime, NO_TOKEN_HASH } from "./identifiers.ts";
import { MAX_INSTANT_MS, type StoreInstant } from "./instant.ts";
import type { LeasePolicy } from "./policy.ts";
import type { Reason } from "./reasons.ts";
import { claimableFrom, type LeaseRecord } from "./record.ts";
import { wantedTtlMs } from "./ttl.ts";

/** Everything that was read from the store for this decision. */
export interface LeaseSnapshot {
  readonly record: LeaseRecord | null;
  /** A new grant is above this generation, too: the store's revision where it has one, otherwise 0. */
  readonly floor: bigint;
  /** What is wrong with what was read. Absent when nothing is known to be. */
  readonly violation?: IntegrityViolation | null;
}

/** Why nothing may be granted on a snapshot, whatever it shows. */
export type IntegrityViolation =
  /** The record is damaged and must not be overwritten. */
  | { readonly kind: "corrupt"; readonly detail: string }
  /**
   * The store shows less than was seen before: it lost writes. A holder whose record is gone may believe in its lease
   * for `forMs` more; infinite where the next fence would never be above those that were seen.
   */
  | { readonly kind: "lost-writes"; readonly forMs: number };

/** What an eligible request leads to. */
export type DecisionPath = "grant" | "extend" | "terminate" | "annotate" | "replay" | "unchanged";

export interface PolicyBundle {
  /** A lease is there, live or expired: not a tombstone, not nothing. */
  readonly leaseExists: boolean;
  readonly leaseExpired: boolean;
  readonly ownerMatch: boolean;
  readonly tokenMatch: boolean;
  readonly ttlInBounds: boolean;
  readonly grantEligible: boolean;
  /** OK_POLICY_EVALUATE when eligible, otherwise the first rule that stands against it. */
  readonly reason: Reason;
  readonly path: DecisionPath | null;
  /** The field and the fix, when the request could not be decided. */
  readonly problem: { readonly field: string; readonly message: string } | null;
}

export function evaluatePolicy(
  command: LeaseCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
): PolicyBundle {
  const incoherent = snapshotIncoherence(snapshot);
  if (incoherent !== null) return refusal(incoherent.reason, incoherent.problem);
  const problem =
    commandProblem(command, snapshot.record) ??
    instantProblem(now) ??
    proofProblem(command, policy) ??
    termProblem(command, policy) ??
    (command.op === "handoff" ? handoffProblem(command, policy) : null) ??
    (command.op === "acquire" ? minHoldProblem(command, policy) : null) ??
    ruleProblem(approvalOf(command));
  if (problem !== null) return refusal("INPUT_SCHEMA_INVALID", problem);
  const foreign = keyIncoherence(snapshot, command.key);
  if (foreign !== null) return refusal(foreign.reason, foreign.problem);
  if (approvalOf(command)?.kind === "quorum-not-met") return refusal("QUORUM_NOT_MET", null);
  const { record, violation = null } = snapshot;
  if (violation?.kind === "corrupt") return refusal("RECORD_CORRUPT", corruptProblem(violation.detail));
  const leaseExists = record !== null && record.state !== "released";
  const leaseExpired =
    leaseExists && (command.op === "acquire" ? now.earliestMs : now.latestMs) >= record.expiresAtMs;
  const ownerMatch =
    record !== null && command.op !== "revoke" && command.op !== "break" && command.holder === record.holder;
  const tokenMatch = record !== null && ownsGrant(command, record, policy);
  const ttlInBounds =
    (command.op !== "acquire" && command.op !== "renew") ||
    ttlIsInBounds(wantedTtlMs(command, record, policy), policy);
  const verdict: Verdict = ttlInBounds
    ? judge(command, snapshot, now, policy, { leaseExists, leaseExpired, ownerMatch, tokenMatch })
    : { reason: "LEASE_TTL_OUT_OF_BOUNDS", path: null };
  return {
    leaseExists,
    leaseExpired,
    ownerMatch,
    tokenMatch,
    ttlInBounds,
    grantEligible: verdict.path !== null,
    reason: verdict.reason,
    path: verdict.path,
    problem: ttlInBounds ? null : ttlProblem(policy),
  };
}

interface Verdict {
  readonly reason: Reason;
  readonly path: DecisionPath | null;
}

interface Facts {
  readonly leaseExists: boolean;
  readonly leaseExpired: boolean;
  readonly ownerMatch: boolean;
  readonly tokenMatch: boolean;
}

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

function judge(
  command: LeaseCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
  facts: Facts,
): Verdict {
  const { record, violation = null } = snapshot;
  if (violation?.kind === "lost-writes" && command.op === "acquire" && policy.release !== "delete") {
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

function ownsGrant(command: LeaseCommand, record: LeaseRecord, policy: LeasePolicy): boolean {
  if (command.op === "revoke" || command.op === "break") return false;
  if (command.op === "acquire") {
    // What was released belongs to nobody, whatever its token was.
    if (record.state === "released" || command.provenTokenHash === undefined) return false;
    return equalInConstantTime(record.tokenHash, command.provenTokenHash);
  }
  if (command.generation !== undefined && command.generation !== record.generation) return false;
  return policy.proof === "generation" || equalInConstantTime(record.tokenHash, command.tokenHash);
}

function ttlIsInBounds(ttlMs: number, policy: LeasePolicy): boolean {
  return ttlMs >= policy.minTtlMs && ttlMs <= policy.maxTtlMs;
}

function ttlProblem(policy: LeasePolicy): { readonly field: string; readonly message: string } {
  return {
    field: "ttlMs",
    message: `must be from ${policy.minTtlMs} to ${policy.maxTtlMs} ms under this policy`,
  };
}

function proofProblem(command: LeaseCommand, policy: LeasePolicy): PolicyBundle["problem"] {
  if (policy.proof !== "generation") return null;
  const owner = command.op !== "acquire" && command.op !== "revoke" && command.op !== "break";
  return owner && command.generation === undefined
    ? { field: "generation", message: "is required under a policy that proves ownership by generation" }
    : null;
}

function termProblem(command: LeaseCommand, policy: LeasePolicy): PolicyBundle["problem"] {
  if (policy.terms === "accept" || (command.op !== "acquire" && command.op !== "renew")) return null;
  return command.term === undefined || command.term === policy.baseTerm
    ? null
    : { field: "term", message: "is not accepted under this policy: leave it out" };
}

function minHoldProblem({ holdAtLeastMs = 0 }: AcquireCommand, policy: LeasePolicy): PolicyBundle["problem"] {
  if (holdAtLeastMs === 0 || policy.release !== "delete") return null;
  return {
    field: "holdAtLeastMs",
    message: "cannot be kept under a policy that deletes records on release: leave it out",
  };
}

function instantProblem(now: unknown): PolicyBundle["problem"] {
  if (typeof now !== "object" || now === null) return { field: "now", message: "must be a store instant" };
  const { earliestMs, latestMs, stampMs } = now as StoreInstant;
  if (!isInstant(earliestMs)) return badInstant("earliestMs");
  if (!isInstant(latestMs)) return badInstant("latestMs");
  if (!isInstant(stampMs)) return badInstant("stampMs");
  return earliestMs <= latestMs ? null : { field: "now", message: "must have earliestMs <= latestMs" };
}

function isInstant(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= MAX_INSTANT_MS;
}

function badInstant(field: keyof StoreInstant): PolicyBundle["problem"] {
  return { field: `now.${field}`, message: `must be a whole number of milliseconds up to ${MAX_INSTANT_MS}` };
}

/** Only commands that grant or prolong a lease, or take it from its holder, are subject to approval. */
function approvalOf(command: LeaseCommand): ApprovalVerdict | undefined {
  return "approval" in command ? command.approval : undefined;
}

function ruleProblem(approval: ApprovalVerdict | undefined): PolicyBundle["problem"] {
  if (approval?.kind !== "rule-violated") return null;
  const { field, message } = approval;
  return { field, message };
}

function corruptProblem(detail: string): PolicyBundle["problem"] {
  return {
    field: "key",
    message: `has a damaged record (${detail}): nothing was changed; an operator can inspect and repair it`,
  };
}

/** Whether the decision is the same whatever the store holds: such a request needs no read. */
export function isDecidedByRequest({ reason, problem }: PolicyBundle): boolean {
  return problem !== null && reason !== "RECORD_CORRUPT" && !isSnapshotProblem(problem);
}

function refusal(reason: Reason, problem: PolicyBundle["problem"]): PolicyBundle {
  return {
    leaseExists: false,
    leaseExpired: false,
    ownerMatch: false,
    tokenMatch: false,
    ttlInBounds: false,
    grantEligible: false,
    reason,
    path: null,
    problem,
  };
}
