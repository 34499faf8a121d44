/**
 * The first of the two steps of a decision: what is true of this request against this snapshot.
 *
 * Two times are asked of the interval: a lease of ANOTHER is over only when even the earliest possible
 * store time says so; the caller's OWN lease counts as alive only when even the latest says so. Every
 * comparison is half-open: dead at exactly expiresAtMs.
 */
import { isSnapshotProblem, keyIncoherence, snapshotIncoherence } from "./coherence.ts";
import { commandProblem, type LeaseCommand } from "./command.ts";
import type { FieldProblem } from "./field-problem.ts";
import { equalInConstantTime } from "./identifiers.ts";
import type { StoreInstant } from "./instant.ts";
import type { LeasePolicy } from "./policy.ts";
import { approvalOf, policyProblem, ttlProblem } from "./policy-problems.ts";
import type { Reason } from "./reasons.ts";
import type { LeaseRecord } from "./record.ts";
import { type DecisionPath, type Facts, judge, NOTHING_TRUE, type Verdict } from "./rules.ts";
import type { LeaseSnapshot } from "./snapshot.ts";
import { wantedTtlMs } from "./ttl.ts";

export interface PolicyBundle extends Facts {
  readonly ttlInBounds: boolean;
  readonly grantEligible: boolean;
  /** OK_POLICY_EVALUATE when eligible, otherwise the first rule that stands against it. */
  readonly reason: Reason;
  readonly path: DecisionPath | null;
  /** The field and the fix, when the request could not be decided. */
  readonly problem: FieldProblem | null;
}

export function evaluatePolicy(
  command: LeaseCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
): PolicyBundle {
  const incoherent = snapshotIncoherence(snapshot);
  if (incoherent !== null) return refusal(incoherent.reason, incoherent.problem);
  const problem = commandProblem(command, snapshot.record) ?? policyProblem(command, now, policy);
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

function corruptProblem(detail: string): FieldProblem | null {
  return {
    field: "key",
    message: `has a damaged record (${detail}): nothing was changed; an operator can inspect and repair it`,
  };
}

/** Whether the decision is the same whatever the store holds: such a request needs no read. */
export function isDecidedByRequest({ reason, problem }: PolicyBundle): boolean {
  return problem !== null && reason !== "RECORD_CORRUPT" && !isSnapshotProblem(problem);
}

function refusal(reason: Reason, problem: FieldProblem | null): PolicyBundle {
  return { ...NOTHING_TRUE, reason, path: null, problem };
}
