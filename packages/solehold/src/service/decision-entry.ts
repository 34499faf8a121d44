/** How an attempt looks once it is decided: to its caller, and in the audit trail. */

import type { QuorumVerification } from "../coordinator/index.ts";
import { formatFence, type LeaseRecord, type Reason, reasonCode, recordFence } from "../core/index.ts";
import type { CommandOutcome, LeaseRequest } from "../manager/index.ts";
import type { AuditEvent } from "./audit/index.ts";
import { type LeaseServiceCode, serviceCode } from "./codes.ts";

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

export function entryOf(
  request: LeaseRequest,
  outcome: CommandOutcome,
  traceId: string,
  nowMs: number,
): LeaseDecisionEntry {
  const action = request.op === "acquire" ? "grant" : request.op;
  const holder = "holder" in request ? request.holder : null;
  const unnamed = `${request.key.tenant}/${request.key.name}`;
  if (outcome.kind === "applied") {
    const { lease } = outcome.decision;
    const reason = outcome.decision.reason;
    const [leaseId, fence] = [leaseIdOf(lease), recordFence(lease)];
    const timestampMs = outcome.storeTimeMs;
    return { leaseId, action, allowed: true, reason, code: "LS_OK", traceId, timestampMs, holder, fence };
  }
  const reason = outcome.kind === "refused" ? outcome.decision.reason : "INTERNAL_PIPELINE_ERROR";
  const code = outcome.kind === "refused" ? serviceCode(request.op, reason) : "LS_UNAVAILABLE";
  const timestampMs = outcome.kind === "refused" && outcome.storeTimeMs > 0 ? outcome.storeTimeMs : nowMs;
  return {
    leaseId: unnamed,
    action,
    allowed: false,
    reason,
    code,
    traceId,
    timestampMs,
    holder,
    fence: null,
  };
}

export function auditEventOf(
  request: LeaseRequest,
  outcome: CommandOutcome,
  entry: LeaseDecisionEntry,
  quorum: QuorumVerification | null,
): AuditEvent {
  const { leaseId, action, allowed, reason, traceId, timestampMs, holder, fence } = entry;
  const purpose = purposeOf(request, outcome);
  return {
    at: timestampMs,
    tenant: request.key.tenant,
    key: request.key.name,
    leaseId,
    action,
    allowed,
    reason,
    reasonCode: reasonCode(reason),
    traceId,
    outcome: outcome.kind === "unsettled" ? outcomeOfUnsettled(outcome.outcome) : outcome.kind,
    ...(holder === null ? {} : { holder }),
    ...(fence === null ? {} : { fence: formatFence(fence) }),
    ...(purpose === null ? {} : { purpose }),
    ...(quorum === null ? {} : { detail: quorumDetail(quorum) }),
  };
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
