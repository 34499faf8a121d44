/** How an attempt looks once it is decided: to its caller, and in the audit trail. */

import type { QuorumVerification } from "../approvals/index.ts";
import type { AuditEvent } from "../audit/index.ts";
import {
  formatFence,
  type LeaseKey,
  type LeaseRecord,
  type Reason,
  reasonCode,
  recordFence,
} from "../core/index.ts";
import type { CommandOutcome, LeaseRequest, Writable } from "../executor/index.ts";
import type { StoreError } from "../store/index.ts";
import { type LeaseServiceCode, serviceCode } from "./service-codes.ts";

/** One attempt and how it was decided, as it stands in the audit. */
export interface LeaseDecisionEntry {
  readonly leaseId: string;
  readonly action: string;
  readonly allowed: boolean;
  readonly reason: Reason;
  readonly code: LeaseServiceCode;
  readonly traceId: string;
  readonly timestampMs: number;
  readonly holder: string | null;
  readonly fence: bigint | null;
}

/** Every grant has its own id: the key and the fence. */
export function leaseIdOf(record: LeaseRecord): string {
  return `${record.key.tenant}/${record.key.name}@${recordFence(record)}`;
}

/** `decidedAtMs`: by the store's clock where it decided, else when it was known here. */
export function entryOf(
  request: LeaseRequest,
  outcome: CommandOutcome,
  traceId: string,
  decidedAtMs: number,
): LeaseDecisionEntry {
  const isApplied = outcome.kind === "applied";
  const reason = outcome.kind === "unsettled" ? "INTERNAL_PIPELINE_ERROR" : outcome.decision.reason;
  const fence = isApplied ? recordFence(outcome.decision.lease) : null;
  const { tenant, name } = request.key;
  return {
    leaseId: fence === null ? `${tenant}/${name}` : `${tenant}/${name}@${fence}`,
    action: request.op === "acquire" ? "grant" : request.op,
    allowed: isApplied,
    reason,
    code: isApplied
      ? "LS_OK"
      : outcome.kind === "refused"
        ? serviceCode(request.op, reason)
        : "LS_UNAVAILABLE",
    traceId,
    timestampMs: decidedAtMs,
    holder: "holder" in request ? request.holder : null,
    fence,
  };
}

/** Built field by field: this is done for every attempt, and spreading optional parts takes much longer. */
export function auditEventOf(
  request: LeaseRequest,
  outcome: CommandOutcome,
  entry: LeaseDecisionEntry,
  quorum: QuorumVerification | null,
): AuditEvent {
  const event: Writable<AuditEvent> = {
    at: entry.timestampMs,
    tenant: request.key.tenant,
    key: request.key.name,
    leaseId: entry.leaseId,
    action: entry.action,
    allowed: entry.allowed,
    reason: entry.reason,
    reasonCode: reasonCode(entry.reason),
    traceId: entry.traceId,
    outcome: outcome.kind === "unsettled" ? outcomeOfUnsettled(outcome.outcome) : outcome.kind,
  };
  const purpose = purposeOf(request, outcome);
  if (entry.holder !== null) event.holder = entry.holder;
  if (entry.fence !== null) event.fence = formatFence(entry.fence);
  if (purpose !== null) event.purpose = purpose;
  if (quorum !== null) event.detail = quorumDetail(quorum);
  return event;
}

/** A lease ran out by itself: nobody asked, so its trace is that of the write that it lived by. */
export function expiryEvent(record: LeaseRecord): AuditEvent {
  return {
    at: record.expiresAtMs,
    tenant: record.key.tenant,
    key: record.key.name,
    leaseId: leaseIdOf(record),
    action: "expire",
    allowed: true,
    reason: "LEASE_EXPIRED",
    reasonCode: reasonCode("LEASE_EXPIRED"),
    holder: record.holder,
    fence: formatFence(recordFence(record)),
    purpose: record.purpose,
    traceId: record.nonce,
    outcome: "none",
  };
}

/** An operator's repair of a damaged record. `ended`: whether there was something to repair, or how the store failed. */
export function repairEvent(
  { tenant, name }: LeaseKey,
  generation: bigint,
  ended: boolean | StoreError,
  traceId: string,
  atMs: number,
): AuditEvent {
  const isDecided = typeof ended === "boolean";
  const reason: Reason = isDecided ? "OK_DECISION_COMPUTE" : "INTERNAL_PIPELINE_ERROR";
  return {
    at: atMs,
    tenant,
    key: name,
    leaseId: `${tenant}/${name}`,
    action: "repair",
    allowed: isDecided,
    reason,
    reasonCode: reasonCode(reason),
    traceId,
    outcome: isDecided ? (ended ? "applied" : "none") : outcomeOfUnsettled(ended.outcome),
    detail: { generation: String(generation) },
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
    signers: accepted
      .map(({ signerId }) => signerId)
      .join(" ")
      .slice(0, 1_000),
    approvals: accepted
      .map(({ approvalId }) => approvalId.slice(0, 22))
      .join(" ")
      .slice(0, 1_000),
    failures: failures
      .map(({ code }) => code)
      .join(" ")
      .slice(0, 1_000),
  };
}

function outcomeOfUnsettled(outcome: "unknown" | "not-applied"): "unknown" | "none" {
  return outcome === "unknown" ? "unknown" : "none";
}

function purposeOf(request: LeaseRequest, outcome: CommandOutcome): string | null {
  if (outcome.kind === "applied") return outcome.decision.lease.purpose;
  return "purpose" in request ? (request.purpose ?? null) : null;
}
