/**
 * Commands: what can be asked of a lease. Everything a decision depends on is in the command, the
 * snapshot, the instant and the policy; randomness (token, nonce) comes in as data.
 */
import { MAX_U64 } from "./fence.ts";
import { type FieldProblem, problemOf, type Untrusted } from "./field-problem.ts";
import { describeNumber, describeType, nameProblem, noteProblem, tokenProblem } from "./identifiers.ts";
import { keyNameProblem, type LeaseKey, tenantProblem } from "./key.ts";
import { metadataProblem } from "./metadata.ts";
import { type LeasePolicy, MAX_DURATION_MS } from "./policy.ts";
import { isPurpose, PURPOSES, type Purpose } from "./purpose.ts";
import type { IdempotencyMark, LeaseRecord, Metadata } from "./record.ts";

interface CommandBase {
  readonly key: LeaseKey;
  /** Unique to this attempt. */
  readonly nonce: string;
  readonly idempotency?: Omit<IdempotencyMark, "op" | "grant">;
}

/** Ownership is proven by the token's hash, or under `proof: "generation"` by holder and generation. */
interface OwnerCommand extends CommandBase {
  readonly holder: string;
  readonly tokenHash: string;
  /** The generation that the caller believes it holds. Required under `proof: "generation"`. */
  readonly generation?: bigint;
}

export interface AcquireCommand extends CommandBase {
  readonly op: "acquire";
  readonly holder: string;
  readonly purpose: Purpose;
  readonly ttlMs: number;
  /** The hash of the token that a grant will carry. */
  readonly tokenHash: string;
  /** The hash of the token of a lease that the caller says it already has. */
  readonly provenTokenHash?: string;
  readonly term?: bigint;
  readonly note?: string;
  readonly metadata?: Metadata;
  /** Nobody may claim the key for so long after the grant, even if it is released or expires before. */
  readonly holdAtLeastMs?: number;
  /** Nobody may claim the key for so long after the grant expired. Not after a release. The policy's when not given. */
  readonly lockDelayMs?: number;
  /** The ticket with which the caller waits: it is let in where the lease is reserved for it. */
  readonly ticket?: string;
  /** The tenant already has as many live leases as it may have. */
  readonly quotaExhausted?: boolean;
  readonly approval?: ApprovalVerdict;
}

/** What a check of approvals found, for a command that needs them. Absent where none are needed, or all are there. */
export type ApprovalVerdict =
  | { readonly kind: "quorum-not-met" }
  /**
   * This very attempt presented the approvals before, at this store time, when the key's generation was this one. It may
   * find or extend what it was granted then. Once another generation was granted, that may have been its grant: it gets
   * no second one.
   */
  | { readonly kind: "used-before"; readonly generation: bigint; readonly atMs: number }
  /** A renewal of a lease that was approved: for no longer than that, nor than the rule allows by now. */
  | { readonly kind: "approved-ttl-only"; readonly maxTtlMs?: number }
  /** The rule of this key does not allow such a request, approved or not. */
  | { readonly kind: "rule-violated"; readonly field: string; readonly message: string };

export interface RenewCommand extends OwnerCommand {
  readonly op: "renew";
  /** The lease's own when it is left out. */
  readonly ttlMs?: number;
  readonly term?: bigint;
  readonly approval?: ApprovalVerdict;
}

export interface ReleaseCommand extends OwnerCommand {
  readonly op: "release";
  /** Release only what the write with this nonce left behind. Whatever was written since stays. */
  readonly onlyNonce?: string;
  /**
   * Grant the lease to this waiter with the same write. Decided as if it had found what the release leaves behind; where
   * it would not be granted, the release is written alone. Its nonce is the release's: one write has one nonce.
   */
  readonly next?: AcquireCommand;
  /** Keep the released lease for the waiter with this ticket, for so long. */
  readonly reserveFor?: { readonly ticket: string; readonly withinMs: number };
}

export interface UseCommand extends OwnerCommand {
  readonly op: "use";
  readonly purpose: Purpose;
}

/** The holder has rebuilt its view from persisted state after a takeover. */
export interface ResumeCommand extends OwnerCommand {
  readonly op: "resume";
}

/** The holder has stopped; only `successor` may take the lease until the deadline. */
export interface HandoffCommand extends OwnerCommand {
  readonly op: "handoff";
  readonly successor: string;
  readonly withinMs: number;
}

/** An operator ends a lease now. With `generation`, only that grant. */
export interface RevokeCommand extends CommandBase {
  readonly op: "revoke";
  readonly generation?: bigint;
  readonly approval?: ApprovalVerdict;
}

/** An operator asks for the lease: no renewal reaches past now + periodMs. With `generation`, only that grant. */
export interface BreakCommand extends CommandBase {
  readonly op: "break";
  readonly periodMs: number;
  readonly generation?: bigint;
  readonly approval?: ApprovalVerdict;
}

export type LeaseCommand =
  | AcquireCommand
  | RenewCommand
  | ReleaseCommand
  | UseCommand
  | ResumeCommand
  | HandoffCommand
  | RevokeCommand
  | BreakCommand;

export type LeaseOp = LeaseCommand["op"];

export const MAX_HOLDER_LENGTH = 128;
export const MAX_NOTE_LENGTH = 512;
export const MAX_TOKEN_LENGTH = 192;
export const MAX_TICKET_LENGTH = 64;
/** A waiter that does not come must not hold a key up for long. */
export const MAX_RESERVATION_MS = 10_000;
const MAX_NONCE_LENGTH = 64;
const HASH_LENGTH = 43;
const OWNER_OPS = new Set<string>(["renew", "release", "use", "resume", "handoff"]);
const OPS = "acquire, renew, release, use, resume, handoff, revoke, break";

/**
 * The first problem of a request, or null. Total: any value may be passed, nothing is thrown. A key or holder equal to
 * the stored record's was validated when that record was written, and is not checked again.
 */
export function commandProblem(command: unknown, record: LeaseRecord | null = null): FieldProblem | null {
  try {
    return firstProblem(command, record);
  } catch {
    return { field: "command", message: "could not be read: it must be plain data" };
  }
}

function firstProblem(command: unknown, record: LeaseRecord | null): FieldProblem | null {
  if (typeof command !== "object" || command === null) {
    return { field: "command", message: `must be an object, got ${describeType(command)}` };
  }
  const request = command as Untrusted;
  const op = request.op;
  const known = op === "acquire" || op === "revoke" || op === "break" || OWNER_OPS.has(op as string);
  if (!known) return { field: "op", message: `must be one of ${OPS}` };
  return (
    keyProblem(request.key, record) ??
    problemOf("nonce", tokenProblem(request.nonce, MAX_NONCE_LENGTH)) ??
    idempotencyProblem(request.idempotency) ??
    (op === "acquire"
      ? acquireProblem(request, record)
      : op === "revoke" || op === "break"
        ? null
        : ownerProblem(request, record)) ??
    durationProblems(op as LeaseOp, request) ??
    optionalU64("generation", request.generation) ??
    optionalU64("term", request.term)
  );
}

function keyProblem(key: unknown, record: LeaseRecord | null): FieldProblem | null {
  if (typeof key !== "object" || key === null) {
    return { field: "key", message: `must be an object with tenant and name, got ${describeType(key)}` };
  }
  const { tenant, name } = key as Untrusted;
  if (record !== null && tenant === record.key.tenant && name === record.key.name) return null;
  return problemOf("key.tenant", tenantProblem(tenant)) ?? problemOf("key.name", keyNameProblem(name));
}

function idempotencyProblem(mark: unknown): FieldProblem | null {
  if (mark === undefined) return null;
  if (typeof mark !== "object" || mark === null) {
    return { field: "idempotency", message: `must be an object, got ${describeType(mark)}` };
  }
  const { keyHash, fingerprint, sealedToken } = mark as Untrusted;
  return (
    problemOf("idempotency.keyHash", hashProblem(keyHash)) ??
    problemOf("idempotency.fingerprint", hashProblem(fingerprint)) ??
    (sealedToken === ""
      ? null
      : problemOf("idempotency.sealedToken", tokenProblem(sealedToken, MAX_TOKEN_LENGTH * 2)))
  );
}

function holderProblem(holder: unknown, record: LeaseRecord | null): FieldProblem | null {
  return record !== null && holder === record.holder
    ? null
    : problemOf("holder", nameProblem(holder, MAX_HOLDER_LENGTH));
}

function acquireProblem(request: Untrusted, record: LeaseRecord | null): FieldProblem | null {
  return (
    holderProblem(request.holder, record) ??
    problemOf("tokenHash", hashProblem(request.tokenHash)) ??
    problemOf("purpose", purposeProblem(request.purpose)) ??
    (request.provenTokenHash === undefined || request.provenTokenHash === request.tokenHash
      ? null
      : problemOf("provenTokenHash", hashProblem(request.provenTokenHash))) ??
    (request.note === undefined ? null : problemOf("note", noteProblem(request.note, MAX_NOTE_LENGTH))) ??
    (request.metadata === undefined ? null : problemOf("metadata", metadataProblem(request.metadata))) ??
    (request.ticket === undefined
      ? null
      : problemOf("ticket", tokenProblem(request.ticket, MAX_TICKET_LENGTH)))
  );
}

function ownerProblem(request: Untrusted, record: LeaseRecord | null): FieldProblem | null {
  return (
    holderProblem(request.holder, record) ??
    problemOf("tokenHash", comparedHashProblem(request.tokenHash)) ??
    (request.op === "release" ? reservationProblem(request.reserveFor) : null) ??
    (request.op === "use" ? problemOf("purpose", purposeProblem(request.purpose)) : null) ??
    (request.op === "handoff"
      ? problemOf("successor", nameProblem(request.successor, MAX_HOLDER_LENGTH))
      : null)
  );
}

function reservationProblem(reserveFor: unknown): FieldProblem | null {
  if (reserveFor === undefined) return null;
  if (typeof reserveFor !== "object" || reserveFor === null)
    return { field: "reserveFor", message: `must be an object, got ${describeType(reserveFor)}` };
  const { ticket, withinMs } = reserveFor as Untrusted;
  return (
    problemOf("reserveFor.ticket", tokenProblem(ticket, MAX_TICKET_LENGTH)) ??
    durationProblem("reserveFor.withinMs", withinMs, 1, MAX_RESERVATION_MS)
  );
}

function durationProblems(op: LeaseOp, request: Untrusted): FieldProblem | null {
  if (op === "acquire") return durationProblem("ttlMs", request.ttlMs, 1) ?? closedPeriodProblem(request);
  if (op === "renew") return request.ttlMs === undefined ? null : durationProblem("ttlMs", request.ttlMs, 1);
  if (op === "handoff") return durationProblem("withinMs", request.withinMs, 1);
  if (op === "break") return durationProblem("periodMs", request.periodMs, 0);
  return null;
}

function closedPeriodProblem({ holdAtLeastMs = 0, lockDelayMs = 0 }: Untrusted): FieldProblem | null {
  return durationProblem("holdAtLeastMs", holdAtLeastMs, 0) ?? durationProblem("lockDelayMs", lockDelayMs, 0);
}

/** What is wrong with a handoff before anything is known of the lease; a key must not be reserved for ever. */
export function handoffProblem(
  { successor, withinMs }: { readonly successor: unknown; readonly withinMs: unknown },
  { maxTtlMs }: LeasePolicy,
): FieldProblem | null {
  const problem =
    problemOf("successor", nameProblem(successor, MAX_HOLDER_LENGTH)) ??
    durationProblem("withinMs", withinMs, 1);
  if (problem !== null || (withinMs as number) <= maxTtlMs) return problem;
  const message = `must be at most ${maxTtlMs} ms, the longest ttl of this policy, got ${String(withinMs)}`;
  return { field: "withinMs", message };
}

function durationProblem(
  field: string,
  value: unknown,
  min: number,
  max = MAX_DURATION_MS,
): FieldProblem | null {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return null;
  const message = `must be a whole number of milliseconds from ${min} to ${max}, got ${describeNumber(value)}`;
  return { field, message };
}

function optionalU64(field: string, value: unknown): FieldProblem | null {
  if (value === undefined || (typeof value === "bigint" && value >= 0n && value <= MAX_U64)) return null;
  return { field, message: "must be a bigint from 0 to 2^64-1" };
}

const HASH_RULE = "must be a SHA-256 in base64url (43 characters)";

function hashProblem(value: unknown): string | null {
  const problem = tokenProblem(value, HASH_LENGTH);
  if (problem !== null) return problem;
  return (value as string).length === HASH_LENGTH ? null : HASH_RULE;
}

/** A hash that is only compared and never kept: whatever its characters are, they either fit or they do not. */
function comparedHashProblem(value: unknown): string | null {
  return typeof value === "string" && value.length === HASH_LENGTH ? null : HASH_RULE;
}

function purposeProblem(value: unknown): string | null {
  return isPurpose(value) ? null : `must be one of ${PURPOSES.join(", ")}`;
}
