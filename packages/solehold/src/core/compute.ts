/**
 * The second step: from the policy bundle to exactly one decision, and to the record to write.
 *
 * A grant never says who held the key before; a denial never carries a token or an expiry of its own.
 */
import type { AcquireCommand, LeaseCommand, ReleaseCommand, RenewCommand } from "./command.ts";
import { nextGeneration } from "./generation.ts";
import { markAfter, markOf } from "./idempotency.ts";
import { NO_TOKEN_HASH } from "./identifiers.ts";
import type { StoreInstant } from "./instant.ts";
import type { LeasePolicy } from "./policy.ts";
import type { Purpose } from "./purpose.ts";
import type { Reason } from "./reasons.ts";
import {
  claimableFrom,
  draftOf,
  type LeaseRecord,
  NO_METADATA,
  type RecordDraft,
  type Reservation,
  recordFence,
  reservedUntil,
} from "./record.ts";
import type { PolicyBundle } from "./rules.ts";
import type { LeaseSnapshot } from "./snapshot.ts";
import { extendedUntil, promisedUntil, recordedTtlMs, wantedTtlMs } from "./ttl.ts";

export interface GrantedDecision {
  readonly kind: "granted";
  readonly reason: "OK_DECISION_COMPUTE";
  /** The lease as it stands after the decision; `released` or `revoked` when it was ended. */
  readonly lease: LeaseRecord;
  /** The last holder did not finish: rebuild from persisted state before acting. */
  readonly resumeFromLedgerRequired: boolean;
  /** This answer was given before: nothing new was granted. */
  readonly replayed: boolean;
  /** The grant that the same write gave to the next, for a release that named one. `lease` never stood in the store. */
  readonly next?: GrantedDecision;
}

export interface DeniedDecision {
  readonly kind: "denied";
  readonly reason: Reason;
  /** Who stands in the way, when somebody does. */
  readonly heldBy: string | null;
  /** From when on the same request may succeed, as far as is known now. */
  readonly heldUntilMs: number | null;
  /** Of the grant that it was decided against, live or ended; null where there was none. */
  readonly fence: bigint | null;
  /** With LEASE_PURPOSE_MISMATCH alone. */
  readonly mismatch?: PurposeMismatch;
}

export interface PurposeMismatch {
  /** What the request required. */
  readonly expected: Purpose;
  /** What the lease was granted for. */
  readonly actual: Purpose;
}

export interface RefusedDecision {
  readonly kind: "refused";
  readonly reason: Reason;
  readonly field: string;
  readonly message: string;
}

export type LeaseDecision = GrantedDecision | DeniedDecision | RefusedDecision;

/** What the store has to do for the decision to become true. */
export type LeaseEffect =
  | { readonly kind: "none" }
  | { readonly kind: "write"; readonly record: LeaseRecord }
  | { readonly kind: "delete" };

export interface ComputedDecision {
  readonly decision: LeaseDecision;
  readonly effect: LeaseEffect;
}

const NO_EFFECT: LeaseEffect = Object.freeze({ kind: "none" });

export function computeDecision(
  command: LeaseCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
  bundle: PolicyBundle,
): ComputedDecision {
  if (bundle.path === null) return { decision: rejection(command, snapshot, now, bundle), effect: NO_EFFECT };
  const { record } = snapshot;
  if (bundle.path === "grant") return write(newGrant(command as AcquireCommand, snapshot, now, policy));
  if (record === null) return internalError();
  switch (bundle.path) {
    case "replay":
      return { decision: granted(record, true), effect: NO_EFFECT };
    case "unchanged":
      return { decision: granted(record, false), effect: NO_EFFECT };
    case "extend":
      return write(extended(command as AcquireCommand | RenewCommand, record, now, policy));
    case "annotate":
      return write(annotated(command, record, now));
    case "terminate": {
      const ended = endedRecord(command, record, now);
      if (command.op === "release" && policy.release === "delete") {
        return { decision: granted(ended, false), effect: { kind: "delete" } };
      }
      return write(ended);
    }
  }
}

function newGrant(
  command: AcquireCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
): LeaseRecord {
  const { record: old } = snapshot;
  // Whoever replaces its own live lease may still believe the older grant, if this reply is lost. And it
  // does not shake off a break.
  const superseded = old !== null && old.state === "held" && now.earliestMs < old.expiresAtMs ? old : null;
  const { ttlMs } = command;
  const { tenant, name } = command.key;
  return {
    key: { tenant, name },
    holder: command.holder,
    purpose: command.purpose,
    tokenHash: command.tokenHash,
    term: command.term ?? policy.baseTerm,
    generation: nextGeneration(snapshot, now, policy),
    ttlMs: superseded === null ? ttlMs : recordedTtlMs(ttlMs, superseded, policy),
    grantedAtMs: now.stampMs,
    renewedAtMs: now.stampMs,
    expiresAtMs: superseded === null ? now.stampMs + ttlMs : extendedUntil(ttlMs, superseded, now, policy),
    endedAtMs: null,
    state: "held",
    renewals: 0,
    resumeRequired: old !== null && leftUnfinished(old),
    breakAtMs: superseded === null ? null : superseded.breakAtMs,
    minHoldUntilMs: minHoldOf(command, superseded, now),
    lockDelayMs: command.lockDelayMs ?? policy.lockDelayMs,
    handoff: null,
    reservation: null,
    ticket: command.ticket ?? "",
    nonce: command.nonce,
    idempotency: markOf(command),
    note: command.note ?? "",
    metadata: command.metadata ?? NO_METADATA,
  };
}

/** Whoever replaces or finds its own live lease does not shorten the time for which it closed the key. */
function minHoldOf(
  { holdAtLeastMs = 0 }: AcquireCommand,
  own: LeaseRecord | null,
  now: StoreInstant,
): number | null {
  const before = own?.minHoldUntilMs ?? null;
  if (holdAtLeastMs === 0) return before;
  return Math.max(now.stampMs + holdAtLeastMs, before ?? 0);
}

/** A released lease was finished by its holder, unless it was handed on or its own takeover never resumed. */
function leftUnfinished(old: LeaseRecord): boolean {
  return old.state !== "released" || old.handoff !== null || old.resumeRequired;
}

function extended(
  command: AcquireCommand | RenewCommand,
  old: LeaseRecord,
  now: StoreInstant,
  policy: LeasePolicy,
): LeaseRecord {
  const ttlMs = wantedTtlMs(command, old, policy);
  const next = draftBy(command, old);
  next.ttlMs = recordedTtlMs(ttlMs, old, policy);
  next.renewedAtMs = now.stampMs;
  next.expiresAtMs = extendedUntil(ttlMs, old, now, policy);
  next.renewals = old.renewals + 1;
  if (command.op === "acquire") {
    next.minHoldUntilMs = minHoldOf(command, old, now);
    next.lockDelayMs = command.lockDelayMs ?? old.lockDelayMs;
  }
  return next;
}

function annotated(command: LeaseCommand, old: LeaseRecord, now: StoreInstant): LeaseRecord {
  const next = draftBy(command, old);
  if (command.op === "break") {
    const wanted = now.stampMs + command.periodMs;
    next.breakAtMs = old.breakAtMs === null ? wanted : Math.min(old.breakAtMs, wanted);
  } else next.resumeRequired = false;
  return next;
}

function endedRecord(command: LeaseCommand, old: LeaseRecord, now: StoreInstant): LeaseRecord {
  const next = draftBy(command, old);
  next.state = command.op === "revoke" ? "revoked" : "released";
  if (command.op === "revoke") {
    next.expiresAtMs = believedUntil(old, now);
    next.minHoldUntilMs = null;
  }
  next.endedAtMs = now.stampMs;
  next.handoff =
    command.op === "handoff"
      ? { successor: command.successor, deadlineMs: now.stampMs + command.withinMs }
      : null;
  next.reservation = command.op === "release" ? reservationOf(command, now) : null;
  // Nobody owns what was released, so nothing can prove it.
  if (command.op === "release") next.tokenHash = NO_TOKEN_HASH;
  return next;
}

function reservationOf({ reserveFor }: ReleaseCommand, now: StoreInstant): Reservation | null {
  if (reserveFor === undefined) return null;
  return { ticket: reserveFor.ticket, deadlineMs: now.stampMs + reserveFor.withinMs };
}

/** The record as it was, but written by this command. */
function draftBy(command: LeaseCommand, old: LeaseRecord): RecordDraft {
  const next = draftOf(old);
  next.nonce = command.nonce;
  next.idempotency = markAfter(command, old);
  return next;
}

/** A holder that handed on has stopped; any other may believe what it was promised. */
function believedUntil(old: LeaseRecord, now: StoreInstant): number {
  return old.state === "released" ? Math.min(old.expiresAtMs, now.stampMs) : promisedUntil(old, now);
}

function granted(lease: LeaseRecord, replayed: boolean): GrantedDecision {
  return {
    kind: "granted",
    reason: "OK_DECISION_COMPUTE",
    lease,
    resumeFromLedgerRequired: lease.state === "held" && lease.resumeRequired,
    replayed,
  };
}

function write(record: LeaseRecord): ComputedDecision {
  return { decision: granted(record, false), effect: { kind: "write", record } };
}

function rejection(
  command: LeaseCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  bundle: PolicyBundle,
): LeaseDecision {
  const { reason, problem } = bundle;
  if (problem !== null) return { kind: "refused", reason, field: problem.field, message: problem.message };
  const { record } = snapshot;
  if (reason === "IDEMPOTENCY_KEY_REUSED") {
    return {
      kind: "refused",
      reason,
      field: "idempotencyKey",
      message: "was used before with other arguments: use a new key for a new request",
    };
  }
  const heldUntilMs =
    command.op !== "acquire"
      ? null
      : reason === "FENCE_WENT_BACK"
        ? lostUntil(snapshot, now)
        : heldUntil(record, reason);
  const fence = record === null ? null : recordFence(record);
  const denied = { kind: "denied", reason, heldBy: heldBy(record, reason), heldUntilMs, fence } as const;
  const isMismatch = reason === "LEASE_PURPOSE_MISMATCH" && record !== null && "purpose" in command;
  return isMismatch ? { ...denied, mismatch: { expected: command.purpose, actual: record.purpose } } : denied;
}

function heldBy(record: LeaseRecord | null, reason: Reason): string | null {
  if (record === null) return null;
  if (reason === "LEASE_HELD_BY_OTHER" || reason === "LEASE_HELD_BY_SELF") return record.holder;
  return reason === "LEASE_HANDOFF_PENDING" ? (record.handoff?.successor ?? null) : null;
}

function heldUntil(record: LeaseRecord | null, reason: Reason): number | null {
  if (record === null) return null;
  if (reason === "LEASE_HANDOFF_PENDING" || reason === "LEASE_RESERVED") return reservedUntil(record);
  if (reason === "LEASE_LOCK_DELAY") return claimableFrom(record);
  return ENDS_AT_EXPIRY.has(reason) ? record.expiresAtMs : null;
}

/** From when on the store's loss binds nobody any more; null where that never comes. */
function lostUntil({ violation }: LeaseSnapshot, now: StoreInstant): number | null {
  const forMs = violation?.kind === "lost-writes" ? violation.forMs : 0;
  return Number.isFinite(forMs) ? Math.ceil(now.latestMs + forMs) : null;
}

const ENDS_AT_EXPIRY = new Set<Reason>([
  "LEASE_HELD_BY_OTHER",
  "LEASE_HELD_BY_SELF",
  "LEASE_REVOKED",
  "LEASE_BREAKING",
]);

function internalError(): ComputedDecision {
  return {
    decision: {
      kind: "refused",
      reason: "INTERNAL_PIPELINE_ERROR",
      field: "bundle",
      message: "does not belong to this snapshot: evaluatePolicy and computeDecision need the same inputs",
    },
    effect: NO_EFFECT,
  };
}
