/**
 * From outcomes to what goes over the wire. An answer carries all that a remote client needs
 * to know as much as a local one: the lease, its validity as a length (never as an instant of a clock that
 * the client does not have), and the reason.
 *
 * The token is in the answer to an acquire and nowhere else.
 */
import {
  type CommandOutcome,
  formatFence,
  type LeaseOp,
  type LeasePolicy,
  type LeaseView,
  viewOf,
} from "solehold";
import { leaseIdOf, type QuorumVerification, reasonCode, serviceCodeOf } from "solehold/internal";
import { DATA_LOSS, type ProblemBody, type ProblemFacts, type ProblemInput, problemBody } from "./problem.ts";
import type { GrantedReply, WireLease } from "./schemas/leases.ts";

export interface Answer<Body = unknown> {
  readonly status: number;
  readonly body: Body | ProblemBody;
  /** Where it is not JSON; the body then is text. */
  readonly contentType?: string;
}

/** Field by field: this is done for every answer, and a rest pattern takes several times as long. */
export function wireLease(view: LeaseView): WireLease {
  return {
    tenant: view.key.tenant,
    name: view.key.name,
    holder: view.holder,
    purpose: view.purpose,
    state: view.state,
    live: view.live,
    phase: view.phase,
    ttlMs: view.ttlMs,
    grantedAtMs: view.grantedAtMs,
    renewedAtMs: view.renewedAtMs,
    expiresAtMs: view.expiresAtMs,
    endedAtMs: view.endedAtMs,
    remainingMs: view.remainingMs,
    renewals: view.renewals,
    resumeRequired: view.resumeRequired,
    breakAtMs: view.breakAtMs,
    handoff: view.handoff,
    reservation: view.reservation,
    note: view.note,
    metadata: view.metadata,
    fence: formatFence(view.fence),
    term: view.term.toString(),
    generation: view.generation.toString(),
  };
}

/** What an answer is made of besides the outcome. */
export interface AnswerContext {
  readonly policy: LeasePolicy;
  readonly traceId: string;
  /** In the queue, before the attempt that decided it; counted on the server's clock. */
  readonly waitedMs: number;
}

export function commandAnswer(
  op: LeaseOp,
  outcome: CommandOutcome,
  { policy, traceId, waitedMs }: AnswerContext,
): Answer<GrantedReply> {
  if (outcome.kind !== "applied") return problemAnswer(problemOf(op, outcome), traceId);
  const { decision, storeTimeMs } = outcome;
  const body: GrantedReply = {
    outcome: "applied",
    lease: wireLease(viewOf(decision.lease, storeTimeMs, policy)),
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

export function problemAnswer(input: ProblemInput, traceId: string): { status: number; body: ProblemBody } {
  return { status: input.status, body: problemBody(input, traceId) };
}

function problemOf(op: LeaseOp, outcome: Exclude<CommandOutcome, { kind: "applied" }>): ProblemInput {
  const code = serviceCodeOf(op, outcome);
  if (outcome.kind === "unsettled") {
    const reason = "INTERNAL_PIPELINE_ERROR";
    const facts = { outcome: outcome.outcome, storeError: outcome.cause.kind, retryAfterMs: 1_000 };
    const detail = outcome.cause.kind === "data-loss" ? DATA_LOSS : UNSETTLED[outcome.outcome];
    return { status: 503, reason, code, detail, facts };
  }
  const { decision, storeTimeMs, quorum } = outcome;
  const { reason } = decision;
  if (decision.kind === "refused") {
    const field = decision.field.replace(/^key\./, "").replace(/^key$/, "name");
    const status = reason === "INTERNAL_PIPELINE_ERROR" ? 500 : 400;
    return { status, reason, code, detail: `${field} ${decision.message}`, facts: { field } };
  }
  const { heldBy, heldUntilMs } = decision;
  const retryAfterMs = heldUntilMs === null ? null : Math.max(0, heldUntilMs - storeTimeMs);
  const facts: ProblemFacts = {
    heldBy,
    heldUntilMs,
    storeTimeMs,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
    ...(quorum === undefined ? {} : { quorum: quorumFacts(quorum) }),
  };
  const status = STATUS_OF_DENIAL[reason] ?? 409;
  const quotaFacts = status === 429 ? { retryAfterMs: 1_000 } : {};
  return { status, reason, code, detail: denialDetail(reason, heldBy), facts: { ...facts, ...quotaFacts } };
}

/** Why approvals did not count: by class and signer, never with a signature. */
function quorumFacts({ tier, required, received, passed, failures }: QuorumVerification): object {
  return { tier, required, received, passed, failures };
}

const STATUS_OF_DENIAL: { readonly [reason: string]: number } = {
  LEASE_FENCED: 412,
  LEASE_GENERATION_STALE: 412,
  FENCE_EXHAUSTED: 412,
  FENCE_WENT_BACK: 412,
  QUORUM_NOT_MET: 403,
  CAPACITY_EXCEEDED: 429,
};

const UNSETTLED = {
  unknown: "the store did not confirm: the command may have been carried out; repeat it to find out",
  "not-applied": "the store cannot be reached: nothing was done; try again",
} as const;

const DENIALS: { readonly [reason: string]: string } = {
  LEASE_HELD_BY_SELF: "this holder already has it; renew it with its token, or use another holder name",
  LEASE_HANDOFF_PENDING: "it is being handed to a successor, who may take it until the deadline",
  LEASE_RESERVED: "it is kept for the next waiter, who may take it until the deadline",
  LEASE_TOKEN_INVALID: "the token is not the one of this grant",
  LEASE_NOT_FOUND: "nothing was granted under this name",
  LEASE_EXPIRED: "the lease has ended; acquire it again",
  LEASE_REVOKED: "the lease was revoked; it can be claimed when its old holder can no longer believe in it",
  LEASE_ALREADY_REVOKED: "the lease was revoked before",
  LEASE_FENCED: "a newer term or grant exists; stop using this one",
  LEASE_GENERATION_STALE: "a newer grant exists; stop using this one",
  LEASE_PURPOSE_MISMATCH: "the lease was granted for another purpose",
  LEASE_RESUME_REQUIRED: "the last holder did not finish: rebuild from persisted state, then call resume",
  CAPACITY_EXCEEDED: "this tenant has as many live leases as it may have",
  QUORUM_NOT_MET: "not enough valid approvals",
  RECORD_CORRUPT: "the record of this lease is damaged: an operator must repair it (solehold repair)",
};

function denialDetail(reason: string, heldBy: string | null): string {
  if (reason === "LEASE_HELD_BY_OTHER" && heldBy !== null) return `held by ${heldBy}`;
  return DENIALS[reason] ?? "denied";
}
