/**
 * A command's outcome as an answer, and back: what a server encodes, its client decodes to what a local executor would
 * have said. Validity travels as a length, never as an instant of a clock that the client does not have.
 *
 * Does not travel: hashes, nonces and idempotency marks; the store's time of a refusal; the kind of a store's failure,
 * unless it lost data; how approvals were judged (people see it in the problem); a grant to another waiter that the same
 * write gave. The token travels in the answer to an acquire and nowhere else.
 */
import type { QuorumVerification } from "../approvals/index.ts";
import {
  type ClockReading,
  type GrantedDecision,
  isPurpose,
  isReason,
  type LeaseKey,
  type LeaseOp,
  type LeasePolicy,
  leaseId,
  leaseIdOf,
  type PurposeMismatch,
  REASONS,
  type Reason,
  reasonCode,
} from "../core/index.ts";
import { type CommandOutcome, type UnsettledOutcome, viewOf } from "../executor/index.ts";
import { serviceCodeOf } from "../layers/service-codes.ts";
import { StoreError } from "../store/index.ts";
import { type Fields, fieldsOf, wholeIn } from "./fields.ts";
import { decodeLeaseRecord, encodeLease, type WireLease } from "./lease.ts";
import { encodeProblem, type ProblemBody, type ProblemInput, type WireAnswer } from "./problem.ts";

export interface GrantedBody {
  readonly outcome: "applied";
  readonly lease: WireLease;
  token?: string;
  readonly validForMs: number;
  readonly waitedMs: number;
  readonly storeTimeMs: number;
  readonly resumeFromLedgerRequired: boolean;
  readonly replayed: boolean;
  readonly leaseId: string;
  readonly reason: string;
  readonly reasonCode: number;
  readonly code: string;
  readonly traceId: string;
}

/** What an answer is made of besides the outcome. */
export interface AnswerContext {
  /** What was asked for. */
  readonly key: LeaseKey;
  readonly policy: LeasePolicy;
  readonly traceId: string;
  /** In the queue, before the attempt that decided it; counted on the server's clock. */
  readonly waitedMs: number;
}

export function encodeOutcome(
  op: LeaseOp,
  outcome: CommandOutcome,
  { key, policy, traceId, waitedMs }: AnswerContext,
): WireAnswer<GrantedBody | ProblemBody> {
  if (outcome.kind !== "applied") return encodeProblem(problemOf(op, outcome, key), traceId);
  const { decision, storeTimeMs } = outcome;
  const body: GrantedBody = {
    outcome: "applied",
    lease: encodeLease(viewOf(decision.lease, storeTimeMs, policy)),
    validForMs: outcome.validForMs,
    waitedMs,
    storeTimeMs,
    resumeFromLedgerRequired: decision.resumeFromLedgerRequired,
    replayed: decision.replayed,
    leaseId: leaseIdOf(decision.lease),
    reason: decision.reason,
    reasonCode: reasonCode(decision.reason),
    code: serviceCodeOf(op, outcome),
    traceId,
  };
  if (op === "acquire") body.token = outcome.token;
  return { status: 200, body };
}

/** A store that lost data must say so to everybody, whatever was asked. */
export const DATA_LOSS =
  "the store lost data that it had acknowledged (a failover, a restored backup or a flush): leases that were granted may be missing from it, and their holders may still believe in them; make sure that those holders have stopped, then ask again";

const UNSETTLED = {
  unknown: "it could not be confirmed: the command may have been carried out; repeat it to find out",
  "not-applied": "the store cannot be reached: nothing was done; try again",
} as const;

const RETRY_AFTER_MS = 1_000;

function problemOf(
  op: LeaseOp,
  outcome: Exclude<CommandOutcome, { kind: "applied" }>,
  key: LeaseKey,
): ProblemInput {
  const code = serviceCodeOf(op, outcome);
  if (outcome.kind === "unsettled") {
    const { kind } = outcome.cause;
    const detail = kind === "data-loss" ? DATA_LOSS : UNSETTLED[outcome.outcome];
    const facts = { outcome: outcome.outcome, storeError: kind, retryAfterMs: RETRY_AFTER_MS };
    return { status: 503, reason: "INTERNAL_PIPELINE_ERROR", code, detail, facts };
  }
  const { decision, storeTimeMs, quorum } = outcome;
  const { reason } = decision;
  if (decision.kind === "refused") {
    const field = WIRE_FIELDS[decision.field] ?? decision.field;
    return { reason, code, detail: `${field} ${decision.message}`, facts: { field } };
  }
  const { heldBy, heldUntilMs, fence, mismatch } = decision;
  const retryAfterMs = retryAfter(reason, heldUntilMs, storeTimeMs);
  const facts = {
    ...(fence === null ? {} : { leaseId: leaseId(key, fence) }),
    ...mismatch,
    heldBy,
    heldUntilMs,
    storeTimeMs,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
    ...(quorum === undefined ? {} : { quorum: quorumFacts(quorum) }),
  };
  const isHeld = reason === "LEASE_HELD_BY_OTHER" && heldBy !== null;
  return { reason, code, detail: isHeld ? `held by ${heldBy}` : REASONS[reason].sentence, facts };
}

function retryAfter(reason: Reason, heldUntilMs: number | null, storeTimeMs: number): number | null {
  if (reason === "CAPACITY_EXCEEDED") return RETRY_AFTER_MS;
  return heldUntilMs === null ? null : Math.max(0, heldUntilMs - storeTimeMs);
}

/** Why approvals did not count: by class and signer, never with a signature. */
function quorumFacts({ tier, required, received, passed, failures }: QuorumVerification): object {
  return { tier, required, received, passed, failures };
}

/** The key's parts stand beside the other fields in a body. */
const WIRE_FIELDS: { readonly [field: string]: string } = {
  "key.name": "name",
  "key.tenant": "tenant",
  key: "name",
};
const CORE_FIELDS: { readonly [field: string]: string } = { name: "key.name", tenant: "key.tenant" };

/** When a request was sent: the belief of a grant counts from before, plus the time in the queue, slowed by drift. */
export interface Sent {
  readonly reading: ClockReading;
  /** Asked at once, and only after a wait. */
  readonly received: () => ClockReading;
  readonly driftRatio: number;
}

/** Never throws: an answer that cannot be read is an internal error of the server, with an unknown outcome. */
export function decodeOutcome(answer: WireAnswer, token: string, sent: Sent): CommandOutcome {
  try {
    if (answer.status !== 200) return decodeProblem(answer);
    return decodeGrant(fieldsOf(answer.body), token, sent);
  } catch (cause) {
    const message = `the server's answer (status ${answer.status}) cannot be read: ${String(cause)}`;
    return unsettled(new StoreError("internal", message, { outcome: "unknown", cause }));
  }
}

export function unsettled(cause: StoreError): UnsettledOutcome {
  return { kind: "unsettled", outcome: cause.outcome, cause };
}

function decodeGrant(body: Fields, ownToken: string, sent: Sent): CommandOutcome {
  const decision: GrantedDecision = {
    kind: "granted",
    reason: "OK_DECISION_COMPUTE",
    lease: decodeLeaseRecord(body.lease),
    resumeFromLedgerRequired: body.resumeFromLedgerRequired === true,
    replayed: body.replayed === true,
  };
  return {
    kind: "applied",
    decision,
    token: typeof body.token === "string" ? body.token : decision.lease.state === "released" ? "" : ownToken,
    believedFrom: beliefFrom(sent, wholeIn(body, "waitedMs")),
    validForMs: wholeIn(body, "validForMs"),
    storeTimeMs: wholeIn(body, "storeTimeMs"),
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

function decodeProblem({ status, body }: WireAnswer): CommandOutcome {
  const fields = fieldsOf(body ?? {});
  const { reason, field } = fields;
  const detail = typeof fields.detail === "string" ? fields.detail : `status ${status}`;
  if (status === 401 || (status === 403 && !isReason(reason))) {
    const message = `the server refused access: ${detail}`;
    return unsettled(new StoreError("auth", message, { outcome: "not-applied" }));
  }
  if (isReason(reason) && typeof field === "string") return refused(reason, field, detail);
  if (isReason(reason) && status < 500) return denied(reason, fields);
  const outcome = fields.outcome === "not-applied" || status === 429 ? "not-applied" : "unknown";
  const kind = fields.storeError === "data-loss" ? "data-loss" : "unreachable";
  return unsettled(new StoreError(kind, `the server could not serve it: ${detail}`, { outcome }));
}

function refused(reason: Reason, wireField: string, detail: string): CommandOutcome {
  const message = detail.startsWith(`${wireField} `) ? detail.slice(wireField.length + 1) : detail;
  const field = CORE_FIELDS[wireField] ?? wireField;
  return { kind: "refused", decision: { kind: "refused", reason, field, message }, storeTimeMs: 0 };
}

function denied(reason: Reason, fields: Fields): CommandOutcome {
  const heldBy = typeof fields.heldBy === "string" ? fields.heldBy : null;
  const heldUntilMs = typeof fields.heldUntilMs === "number" ? fields.heldUntilMs : null;
  const storeTimeMs = typeof fields.storeTimeMs === "number" ? fields.storeTimeMs : 0;
  const denial = { kind: "denied", reason, heldBy, heldUntilMs, fence: fenceIn(fields) } as const;
  const mismatch = mismatchIn(fields);
  const decision = mismatch === null ? denial : { ...denial, mismatch };
  return { kind: "refused", decision, storeTimeMs };
}

/** Names may contain an @; the fence stands after the last one. */
function fenceIn({ leaseId: id }: Fields): bigint | null {
  const [, fence] = typeof id === "string" ? (/@(\d{1,39})$/.exec(id) ?? []) : [];
  return fence === undefined ? null : BigInt(fence);
}

function mismatchIn({ expected, actual }: Fields): PurposeMismatch | null {
  return isPurpose(expected) && isPurpose(actual) ? { expected, actual } : null;
}
