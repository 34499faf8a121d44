/**
 * From a server's answers back to what a local executor would have said. Nothing in an answer is trusted
 * to have the right shape: what does not is an internal error of the server, with an unknown outcome.
 */
import {
  type ClockReading,
  type GrantedDecision,
  type Handoff,
  isPurpose,
  type LeaseRecord,
  type LeaseState,
  type Metadata,
  metadataProblem,
  NO_TOKEN_HASH,
  type Purpose,
  REASON_CODES,
  type Reason,
  type Reservation,
} from "../core/index.ts";
import type { CommandOutcome, LeaseView, UnsettledOutcome } from "../executor/index.ts";
import { StoreError } from "../store/index.ts";
import type { RemoteAnswer } from "./transport.ts";

type Fields = { readonly [field: string]: unknown };

/** The belief of a grant counts from before sending, plus the time spent in the queue, slowed by drift. */
export interface Sent {
  readonly reading: ClockReading;
  /** Asked at once, and only after a wait. */
  readonly received: () => ClockReading;
  readonly driftRatio: number;
}

export function outcomeOf(answer: RemoteAnswer, token: string, sent: Sent): CommandOutcome {
  try {
    if (answer.status !== 200) return problem(answer);
    return applied(fieldsOf(answer.body), token, sent);
  } catch (cause) {
    const message = `the server's answer (status ${answer.status}) cannot be read: ${String(cause)}`;
    return unsettled(new StoreError("internal", message, { outcome: "unknown", cause }));
  }
}

export function unsettled(cause: StoreError): UnsettledOutcome {
  return { kind: "unsettled", outcome: cause.outcome, cause };
}

function applied(body: Fields, ownToken: string, sent: Sent): CommandOutcome {
  const token = typeof body.token === "string" ? body.token : ownToken;
  const decision: GrantedDecision = {
    kind: "granted",
    reason: "OK_DECISION_COMPUTE",
    lease: recordFrom(fieldsOf(body.lease)),
    resumeFromLedgerRequired: body.resumeFromLedgerRequired === true,
    replayed: body.replayed === true,
  };
  return {
    kind: "applied",
    decision,
    token,
    believedFrom: beliefFrom(sent, whole(body, "waitedMs")),
    validForMs: whole(body, "validForMs"),
    storeTimeMs: whole(body, "storeTimeMs"),
  };
}

/**
 * The server counted the time in the queue. While this machine slept its monotonic clock stood: what the wall
 * clock moved more than that one is not added to it, or the belief would begin later than the grant.
 */
function beliefFrom({ reading, received: readNow, driftRatio }: Sent, waitedMs: number): ClockReading {
  if (waitedMs === 0) return reading;
  const received = readNow();
  const queuedMs = waitedMs / (1 + driftRatio);
  const elapsedMs = received.monotonicMs - reading.monotonicMs;
  const sleptMs = Math.max(0, received.wallMs - reading.wallMs - elapsedMs);
  const awakeMs = Math.max(0, Math.min(queuedMs - sleptMs, elapsedMs));
  return { monotonicMs: reading.monotonicMs + awakeMs, wallMs: reading.wallMs + queuedMs };
}

function problem({ status, body }: RemoteAnswer): CommandOutcome {
  const fields = fieldsOf(body ?? {});
  const detail = typeof fields.detail === "string" ? fields.detail : `status ${status}`;
  const reason = fields.reason;
  if (status === 401 || (status === 403 && !isReason(reason))) {
    return unsettled(
      new StoreError("auth", `the server refused access: ${detail}`, { outcome: "not-applied" }),
    );
  }
  if (status >= 500 || status === 429 || !isReason(reason)) {
    if (status === 429 && reason === "CAPACITY_EXCEEDED") return denied(reason, fields);
    const outcome = fields.outcome === "not-applied" || status === 429 ? "not-applied" : "unknown";
    const kind = fields.storeError === "data-loss" ? "data-loss" : "unreachable";
    return unsettled(new StoreError(kind, `the server could not serve it: ${detail}`, { outcome }));
  }
  if (status !== 400) return denied(reason, fields);
  const field = typeof fields.field === "string" ? fields.field : "request";
  const message = detail.startsWith(`${field} `) ? detail.slice(field.length + 1) : detail;
  return { kind: "refused", decision: { kind: "refused", reason, field, message }, storeTimeMs: 0 };
}

function denied(reason: Reason, fields: Fields): CommandOutcome {
  const heldBy = typeof fields.heldBy === "string" ? fields.heldBy : null;
  const heldUntilMs = typeof fields.heldUntilMs === "number" ? fields.heldUntilMs : null;
  const storeTimeMs = typeof fields.storeTimeMs === "number" ? fields.storeTimeMs : 0;
  return { kind: "refused", decision: { kind: "denied", reason, heldBy, heldUntilMs }, storeTimeMs };
}

/** What the server keeps to itself (hashes, nonces) is filled with what nobody can use. */
function recordFrom(lease: Fields): LeaseRecord {
  const { handoff } = lease;
  return {
    key: { tenant: text(lease, "tenant"), name: text(lease, "name") },
    holder: text(lease, "holder"),
    purpose: purposeFrom(lease.purpose),
    tokenHash: NO_TOKEN_HASH,
    term: BigInt(text(lease, "term")),
    generation: BigInt(text(lease, "generation")),
    ttlMs: whole(lease, "ttlMs"),
    grantedAtMs: whole(lease, "grantedAtMs"),
    renewedAtMs: whole(lease, "renewedAtMs"),
    expiresAtMs: whole(lease, "expiresAtMs"),
    endedAtMs: lease.endedAtMs === null ? null : whole(lease, "endedAtMs"),
    state: stateOf(lease.state),
    renewals: whole(lease, "renewals"),
    resumeRequired: lease.resumeRequired === true,
    breakAtMs: lease.breakAtMs === null ? null : whole(lease, "breakAtMs"),
    handoff: handoff === null ? null : handoffFrom(fieldsOf(handoff)),
    reservation: lease.reservation === null ? null : reservationFrom(fieldsOf(lease.reservation)),
    ticket: "",
    nonce: "remote",
    idempotency: null,
    note: text(lease, "note"),
    metadata: metadataFrom(lease.metadata),
  };
}

/** A record as far as a watch event tells it. */
export function recordOfEvent(lease: unknown): LeaseRecord {
  return recordFrom(fieldsOf(lease));
}

export function viewFrom(lease: unknown): LeaseView {
  const fields = fieldsOf(lease);
  const {
    tokenHash: _tokenHash,
    nonce: _nonce,
    idempotency: _idempotency,
    ticket: _ticket,
    ...shared
  } = recordFrom(fields);
  return {
    ...shared,
    fence: BigInt(text(fields, "fence")),
    live: fields.live === true,
    phase: fields.phase === "active" ? "active" : fields.phase === "grace" ? "grace" : "expired",
    remainingMs: whole(fields, "remainingMs"),
  };
}

function stateOf(value: unknown): LeaseState {
  if (value === "held" || value === "released" || value === "revoked") return value;
  throw new Error(`state ${String(value)}`);
}

function purposeFrom(value: unknown): Purpose {
  if (isPurpose(value)) return value;
  throw new Error(`purpose ${String(value)}`);
}

function handoffFrom(handoff: Fields): Handoff {
  return { successor: text(handoff, "successor"), deadlineMs: whole(handoff, "deadlineMs") };
}

function reservationFrom(reservation: Fields): Reservation {
  return { ticket: text(reservation, "ticket"), deadlineMs: whole(reservation, "deadlineMs") };
}

function metadataFrom(value: unknown): Metadata {
  const problem = metadataProblem(value);
  if (problem !== null) throw new Error(`metadata ${problem}`);
  return value as Metadata;
}

export function fieldsOf(value: unknown): Fields {
  if (typeof value !== "object" || value === null) throw new Error("an object was expected");
  return value as Fields;
}

function text(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw new Error(`${name} is not a string`);
  return value;
}

function whole(fields: Fields, name: string): number {
  const value = fields[name];
  if (!Number.isSafeInteger(value)) throw new Error(`${name} is not a whole number`);
  return value as number;
}

function isReason(value: unknown): value is Reason {
  return typeof value === "string" && value in REASON_CODES;
}
