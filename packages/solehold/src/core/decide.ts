/**
 * The brain. Every path through Solehold (library, server, command line, simulator) asks this one
 * function; nothing else decides who holds a lease. Two steps: `evaluatePolicy` finds what is true of the request
 * against the snapshot, and `computeDecision` makes one decision of it, with the record to write.
 *
 * Pure and total: no clock, no randomness, no I/O, no exception for bad input; the same input gives the
 * same bytes. It promises nothing about what happened to the store since the snapshot was read: the
 * caller writes the effect on condition that the snapshot still stands.
 *
 * Two times are asked of the interval: a lease of ANOTHER is over only when even the earliest possible
 * store time says so; the caller's OWN lease counts as alive only when even the latest says so. Every
 * comparison is half-open: dead at exactly expiresAtMs.
 */
import { isSnapshotProblem, keyIncoherence, snapshotIncoherence } from "./coherence.ts";
import { type AcquireCommand, commandProblem, type LeaseCommand } from "./command.ts";
import { computeDecision, type LeaseDecision, type LeaseEffect } from "./compute.ts";
import type { FieldProblem } from "./field-problem.ts";
import { equalInConstantTime } from "./identifiers.ts";
import type { StoreInstant } from "./instant.ts";
import type { LeasePolicy } from "./policy.ts";
import { approvalOf, policyProblem, ttlProblem } from "./policy-problems.ts";
import type { Reason } from "./reasons.ts";
import type { LeaseRecord } from "./record.ts";
import { judge, NOTHING_TRUE, type PolicyBundle, type Verdict } from "./rules.ts";
import type { LeaseSnapshot } from "./snapshot.ts";
import { wantedTtlMs } from "./ttl.ts";

export interface Decided {
  readonly bundle: PolicyBundle;
  readonly decision: LeaseDecision;
  readonly effect: LeaseEffect;
}

export function decide(
  command: LeaseCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
): Decided {
  try {
    const decided = decideOne(command, snapshot, now, policy);
    const next = command.op === "release" ? command.next : undefined;
    return next === undefined ? decided : withNextGrant(decided, next, snapshot, now, policy);
  } catch {
    return UNREADABLE;
  }
}

function decideOne(
  command: LeaseCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
): Decided {
  const bundle = evaluatePolicy(command, snapshot, now, policy);
  const { decision, effect } = computeDecision(command, snapshot, now, policy, bundle);
  return { bundle, decision, effect };
}

/**
 * A release and the grant to the next waiter, in one write: the acquire is decided on what the release would leave behind,
 * and only the result of both is written. Either both happen or neither does. Where the acquire is not granted on what the
 * release leaves (a handoff to another, a store that lost writes, a policy that deletes what is released), the release is
 * written alone.
 */
function withNextGrant(
  released: Decided,
  next: AcquireCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
): Decided {
  const { decision, effect } = released;
  if (decision.kind !== "granted" || decision.replayed || effect.kind !== "write") return released;
  const acquire: AcquireCommand = { ...next, nonce: effect.record.nonce };
  const granted = decideOne(acquire, { ...snapshot, record: effect.record }, now, policy);
  if (granted.decision.kind !== "granted" || granted.effect.kind !== "write") return released;
  return { ...released, decision: { ...decision, next: granted.decision }, effect: granted.effect };
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

const PROBLEM = {
  field: "input",
  message: "could not be read: command, snapshot, instant and policy must be plain data",
};

/** For objects whose fields throw or change while they are read. Nothing is granted on such a base. */
const UNREADABLE: Decided = Object.freeze({
  bundle: Object.freeze({
    ...NOTHING_TRUE,
    reason: "INTERNAL_PIPELINE_ERROR",
    path: null,
    problem: Object.freeze(PROBLEM),
  }),
  decision: Object.freeze({ kind: "refused", reason: "INTERNAL_PIPELINE_ERROR", ...PROBLEM }),
  effect: Object.freeze({ kind: "none" }),
});
