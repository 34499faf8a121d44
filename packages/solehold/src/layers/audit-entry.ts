/** How an attempt looks in the audit trail once it is decided. */

import type { QuorumVerification } from "../approvals/index.ts";
import type { AuditEvent } from "../audit/index.ts";
import {
  formatFence,
  type LeaseKey,
  type LeaseRecord,
  leaseId,
  REASONS,
  type Reason,
  reasonCode,
  recordFence,
} from "../core/index.ts";
import type { CallContext, CommandOutcome, Explanation, LeaseRequest } from "../executor/index.ts";
import type { StoreError } from "../store/index.ts";
import { serviceCodeOf } from "./service-codes.ts";

/** The attempt's trace is known by now. */
export type TracedContext = CallContext & { readonly traceId: string };

/** Who asked, from where, under which trace. */
function originOf({ caller, address, traceId }: TracedContext): Pick<AuditEvent, "traceId"> {
  return {
    ...(caller === undefined ? {} : { caller }),
    ...(address === undefined || address === "" ? {} : { address }),
    traceId,
  };
}

function subjectOf(key: LeaseKey, fence: bigint | null): Pick<AuditEvent, "tenant" | "key" | "leaseId"> {
  return { tenant: key.tenant, key: key.name, leaseId: leaseId(key, fence) };
}

function decidedFor(reason: Reason): Pick<AuditEvent, "reason" | "reasonCode"> {
  return { reason, reasonCode: reasonCode(reason) };
}

/** `atMs`: by the store's clock where it decided, else when the outcome was known here. */
export function auditEventOf(
  request: LeaseRequest,
  outcome: CommandOutcome,
  context: TracedContext,
  atMs: number,
): AuditEvent {
  const reason = outcome.kind === "unsettled" ? "INTERNAL_PIPELINE_ERROR" : outcome.decision.reason;
  const lease = outcome.kind === "applied" ? outcome.decision.lease : null;
  const fence = lease === null ? deniedFence(outcome) : recordFence(lease);
  // Of several slots the grant says which one it is.
  const leased = lease?.key ?? request.key;
  const purpose = lease?.purpose ?? ("purpose" in request ? request.purpose : undefined);
  const detail = {
    ...denialDetail(outcome),
    ...(context.waitedMs === undefined ? {} : { waitedMs: context.waitedMs }),
    ...(outcome.quorum === undefined ? {} : quorumDetail(outcome.quorum)),
  };
  return {
    at: atMs,
    ...subjectOf(leased, fence),
    action: request.op === "acquire" ? "grant" : request.op,
    allowed: lease !== null,
    ...decidedFor(reason),
    code: serviceCodeOf(request.op, outcome),
    ...originOf(context),
    outcome: outcome.kind === "unsettled" ? outcomeOfUnsettled(outcome.outcome) : outcome.kind,
    ...("holder" in request ? { holder: request.holder } : {}),
    ...(lease === null || fence === null ? {} : { fence: formatFence(fence) }),
    ...(purpose === undefined ? {} : { purpose }),
    ...(Object.keys(detail).length === 0 ? {} : { detail }),
  };
}

/** A lease ran out by itself: nobody asked, so its trace is that of the write that it lived by. */
export function expiryEvent(record: LeaseRecord): AuditEvent {
  const fence = recordFence(record);
  return {
    at: record.expiresAtMs,
    ...subjectOf(record.key, fence),
    action: "expire",
    allowed: true,
    ...decidedFor("LEASE_EXPIRED"),
    code: REASONS.LEASE_EXPIRED.serviceCode,
    holder: record.holder,
    fence: formatFence(fence),
    purpose: record.purpose,
    traceId: record.nonce,
    outcome: "none",
  };
}

/** Somebody asked what would be decided: as the decision, but nothing came of it. */
export function explainEvent(
  request: LeaseRequest,
  { decision, storeTimeMs }: Explanation,
  context: TracedContext,
  atMs: number,
): AuditEvent {
  const { kind, reason } = decision;
  const fence = kind === "denied" ? decision.fence : null;
  const outcome = kind === "granted" ? null : ({ kind: "refused", decision, storeTimeMs } as const);
  return {
    at: storeTimeMs > 0 ? storeTimeMs : atMs,
    ...subjectOf(request.key, fence),
    action: "explain",
    allowed: kind === "granted",
    ...decidedFor(reason),
    code: outcome === null ? "LS_OK" : serviceCodeOf(request.op, outcome),
    ...originOf(context),
    outcome: "none",
    ...("holder" in request ? { holder: request.holder } : {}),
    detail: { op: request.op, ...(outcome === null ? {} : denialDetail(outcome)) },
  };
}

/** An operator's repair of a damaged record. `ended`: whether there was something to repair, or how the store failed. */
export function repairEvent(
  key: LeaseKey,
  generation: bigint,
  ended: boolean | StoreError,
  context: TracedContext,
  atMs: number,
): AuditEvent {
  const isDecided = typeof ended === "boolean";
  const reason: Reason = isDecided ? "OK_DECISION_COMPUTE" : "INTERNAL_PIPELINE_ERROR";
  return {
    at: atMs,
    ...subjectOf(key, null),
    action: "repair",
    allowed: isDecided,
    ...decidedFor(reason),
    code: REASONS[reason].serviceCode,
    ...originOf(context),
    outcome: isDecided ? (ended ? "applied" : "none") : outcomeOfUnsettled(ended.outcome),
    detail: { generation: String(generation) },
  };
}

/** Of the grant that a denial was decided against. */
function deniedFence(outcome: CommandOutcome): bigint | null {
  const isDenied = outcome.kind === "refused" && outcome.decision.kind === "denied";
  return isDenied ? outcome.decision.fence : null;
}

/** Who stood in the way of what was denied and until when, or which purposes did not agree. */
function denialDetail(outcome: CommandOutcome): Record<string, string | number> {
  if (outcome.kind !== "refused" || outcome.decision.kind !== "denied") return {};
  const { heldBy, heldUntilMs, mismatch } = outcome.decision;
  return {
    ...mismatch,
    ...(heldBy === null ? {} : { heldBy }),
    ...(heldUntilMs === null ? {} : { heldUntilMs }),
  };
}

/** Who approved and what was wrong, never the signatures themselves. */
function quorumDetail(quorum: QuorumVerification): Record<string, string | number | boolean> {
  const { tier, required, received, passed, accepted, failures } = quorum;
  return {
    tier,
    required,
    received,
    quorumPassed: passed,
    signers: listed(accepted.map(({ signerId }) => signerId)),
    approvals: listed(accepted.map(({ approvalId }) => approvalId.slice(0, 22))),
    failures: listed(failures.map(({ code }) => code)),
  };
}

function listed(words: readonly string[]): string {
  return words.join(" ").slice(0, 1_000);
}

function outcomeOfUnsettled(outcome: "unknown" | "not-applied"): "unknown" | "none" {
  return outcome === "unknown" ? "unknown" : "none";
}
