/**
 * The decision gate in the words of document 002: LEASE_POLICY_EVALUATE -> LEASE_DECISION_COMPUTE, for work orders. Pure:
 * no clock, no randomness, no I/O; the same input gives the same bytes. It translates the document's fields, and the three
 * fields of its snapshot, into Solehold's; `core` decides.
 *
 * What it grants becomes true only when the caller writes it on condition that the snapshot still stands.
 */
import {
  computeDecision as coreDecision,
  evaluatePolicy as corePolicy,
  createPolicy,
  DEFAULT_PURPOSE,
  exactly,
  type FieldProblem,
  type LeaseCommand,
  type LeasePolicy,
  type LeaseRecord,
  type LeaseSnapshot,
  type PolicyBundle,
  plainRecord,
  type Reason,
  reasonCode,
} from "../core/index.ts";
import { NOTHING_TRUE } from "../core/rules.ts";
import { type Env, randomId, realEnv } from "../env/index.ts";
import { hashToken } from "../executor/index.ts";
import { gateProblem } from "./decision-gate-input.ts";
import { seedValue } from "./seed-json.ts";
import { DECISION_GATE_POLICY } from "./seed-policies.ts";

export interface LeaseGateRequest {
  /** 1 to 64 characters. */
  readonly tenantId: string;
  /** 1 to 128 characters. */
  readonly workOrderId: string;
  /** 1 to 128 characters. */
  readonly leaseOwnerId: string;
  readonly operation: "ACQUIRE" | "RENEW" | "RELEASE";
  /** For ACQUIRE and RENEW. */
  readonly requestedTtlMs?: number;
  /** Milliseconds of the clock that `activeLeaseExpiresAt` was written by. */
  readonly now: number;
  /** Required by RENEW and RELEASE. */
  readonly leaseToken?: string;
  /** The token that a grant of ACQUIRE will carry. `decideLease` draws one; the pure functions need it. */
  readonly proposedToken?: string;
  /** Handed on unchanged, for the caller that keeps answers. */
  readonly idempotencyKey?: string;
}

/** What persistence holds for this work order: all three fields, or null when there is no lease. */
export interface ActiveLeaseSnapshot {
  readonly activeLeaseOwnerId: string;
  readonly activeLeaseToken: string;
  readonly activeLeaseExpiresAt: number;
}

/** The document's lease_policy_bundle. */
export interface LeasePolicyBundle {
  /** Also when it has expired. */
  readonly leaseExists: boolean;
  readonly leaseExpired: boolean;
  readonly ownerMatch: boolean;
  readonly tokenMatch: boolean;
  readonly ttlInBounds: boolean;
  readonly grantEligible: boolean;
  /** OK_POLICY_EVALUATE when eligible, otherwise the first rule that stands against it. */
  readonly reason: Reason;
  readonly reasonCode: number;
}

interface DecisionBase {
  /** A lease that had expired was taken over: rebuild from the ledger before acting. Only with a grant. */
  readonly resumeFromLedgerRequired: boolean;
  readonly reason: Reason;
  readonly reasonCode: number;
  readonly idempotencyKey: string | null;
}

/** The document's lease_decision_bundle: exactly one decision. A malformed request is refused, which is no denial. */
export type LeaseDecisionBundle =
  | (DecisionBase & {
      readonly decision: "LeaseGranted";
      /** Null after a release: the token is cleared. */
      readonly leaseToken: string | null;
      readonly leaseExpiresAt: number | null;
    })
  | (DecisionBase & {
      readonly decision: "LeaseDenied";
      /** Only where another owner has the lease. */
      readonly heldBy: string | null;
      readonly heldUntil: number | null;
    })
  | (DecisionBase & {
      readonly decision: "Refused";
      readonly field: string;
      readonly message: string;
    });

const GATE_POLICY = createPolicy(DECISION_GATE_POLICY);
const GATE_NONCE = "gate";

/** LEASE_POLICY_EVALUATE: what is true of the request against the snapshot. `policy` defaults to document 002's. */
export function evaluatePolicy(
  request: LeaseGateRequest,
  snapshot: ActiveLeaseSnapshot | null,
  policy: LeasePolicy = GATE_POLICY,
): LeasePolicyBundle {
  const refused = gateProblem(request, snapshot);
  if (refused !== null)
    return seedValue({ ...NOTHING_TRUE, reason: refused.reason, reasonCode: reasonCode(refused.reason) });
  const { path: _path, problem: _problem, ...facts } = evaluated(request, snapshot, policy).bundle;
  return seedValue({ ...facts, reasonCode: reasonCode(facts.reason) });
}

/** LEASE_DECISION_COMPUTE: exactly one decision. A bundle that does not belong to these inputs is refused. */
export function computeDecision(
  request: LeaseGateRequest,
  snapshot: ActiveLeaseSnapshot | null,
  bundle: LeasePolicyBundle,
  policy: LeasePolicy = GATE_POLICY,
): LeaseDecisionBundle {
  const refused = gateProblem(request, snapshot);
  if (refused !== null) return refusal(request, refused.reason, refused.problem);
  const { command, known, now, bundle: own } = evaluated(request, snapshot, policy);
  if (own.reason !== bundle.reason || own.grantEligible !== bundle.grantEligible)
    return refusal(request, "INTERNAL_PIPELINE_ERROR", FOREIGN_BUNDLE);
  const { decision } = coreDecision(command, known, now, policy, own);
  const { reason } = decision;
  if (decision.kind === "refused") return refusal(request, reason, decision);
  if (decision.kind === "denied") {
    const { heldBy, heldUntilMs: heldUntil } = decision;
    return seedValue({
      decision: "LeaseDenied",
      heldBy,
      heldUntil,
      resumeFromLedgerRequired: false,
      ...explained(request, reason),
    });
  }
  const isActive = decision.lease.state === "held";
  return seedValue({
    decision: "LeaseGranted",
    leaseToken: isActive ? tokenOf(request) : null,
    leaseExpiresAt: isActive ? decision.lease.expiresAtMs : null,
    resumeFromLedgerRequired: decision.resumeFromLedgerRequired,
    ...explained(request, reason),
  });
}

/** Both steps in order. An ACQUIRE without a proposed token gets 128 random bits. */
export function decideLease(
  request: LeaseGateRequest,
  snapshot: ActiveLeaseSnapshot | null,
  options: { readonly policy?: LeasePolicy; readonly env?: Env } = {},
): LeaseDecisionBundle {
  const { policy = GATE_POLICY, env = realEnv } = options;
  const needsToken = request.operation === "ACQUIRE" && request.proposedToken === undefined;
  const complete = needsToken ? { ...request, proposedToken: randomId(env) } : request;
  return computeDecision(complete, snapshot, evaluatePolicy(complete, snapshot, policy), policy);
}

/** The two steps by the document's names. */
export const LEASE_POLICY_EVALUATE = evaluatePolicy;
export const LEASE_DECISION_COMPUTE = computeDecision;

function evaluated(
  request: LeaseGateRequest,
  snapshot: ActiveLeaseSnapshot | null,
  policy: LeasePolicy,
): {
  readonly command: LeaseCommand;
  readonly known: LeaseSnapshot;
  readonly now: ReturnType<typeof exactly>;
  readonly bundle: PolicyBundle;
} {
  const command = commandOf(request, policy);
  const known = { record: snapshot === null ? null : recordOf(request, snapshot, policy), floor: 0n };
  const now = exactly(request.now);
  return { command, known, now, bundle: corePolicy(command, known, now, policy) };
}

function commandOf(request: LeaseGateRequest, policy: LeasePolicy): LeaseCommand {
  const { tenantId: tenant, workOrderId: name, leaseOwnerId: holder } = request;
  const base = { key: { tenant, name }, holder, nonce: GATE_NONCE, tokenHash: hashToken(tokenOf(request)) };
  const ttlMs = request.requestedTtlMs ?? policy.defaultTtlMs;
  switch (request.operation) {
    case "ACQUIRE":
      return { op: "acquire", ...base, purpose: DEFAULT_PURPOSE, ttlMs };
    case "RENEW":
      return { op: "renew", ...base, ttlMs };
    case "RELEASE":
      return { op: "release", ...base };
  }
}

function tokenOf({ operation, leaseToken = "", proposedToken = "" }: LeaseGateRequest): string {
  return operation === "ACQUIRE" ? proposedToken : leaseToken;
}

/** The document's three fields as a record. It does not say how long the lease was granted for, and nobody asks. */
function recordOf(
  { tenantId: tenant, workOrderId: name }: LeaseGateRequest,
  { activeLeaseOwnerId, activeLeaseToken, activeLeaseExpiresAt }: ActiveLeaseSnapshot,
  policy: LeasePolicy,
): LeaseRecord {
  return plainRecord({
    key: { tenant, name },
    holder: activeLeaseOwnerId,
    tokenHash: hashToken(activeLeaseToken),
    term: policy.baseTerm,
    expiresAtMs: activeLeaseExpiresAt,
    nonce: GATE_NONCE,
  });
}

const FOREIGN_BUNDLE: FieldProblem = {
  field: "bundle",
  message: "does not belong to this request and snapshot: pass what evaluatePolicy gave for the same two",
};

function refusal(
  request: LeaseGateRequest,
  reason: Reason,
  { field, message }: FieldProblem,
): LeaseDecisionBundle {
  return seedValue({
    decision: "Refused",
    field: SEED_FIELDS.get(field) ?? field,
    message,
    resumeFromLedgerRequired: false,
    ...explained(request, reason),
  });
}

/** Core's names for the document's fields. */
const SEED_FIELDS: ReadonlyMap<string, string> = new Map([
  ["key.tenant", "tenantId"],
  ["key.name", "workOrderId"],
  ["holder", "leaseOwnerId"],
  ["ttlMs", "requestedTtlMs"],
  ["now.earliestMs", "now"],
]);

function explained(request: LeaseGateRequest, reason: Reason) {
  return { reason, reasonCode: reasonCode(reason), idempotencyKey: request?.idempotencyKey ?? null };
}
