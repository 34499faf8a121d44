/**
 * Whether enough known signers consent to exactly this request, now. Pure: the clock, the approvals, the
 * signers and what was used before all come in, so the same inputs give the same answer on replay.
 *
 * Promised: it never throws, always answers with the same shape, and fails closed. `received` counts distinct
 * known signers with at least one approval that is authentic, signed by a key in force, inside its window
 * and not used before.
 *
 * Not promised: single use. This function can refuse what its caller says was used; only the service, which
 * stores the accepted ids together with its decision, can make the second use impossible. Nor does it choose
 * the tier: the service does, by policy, and must not take it from the caller.
 */

import { type FieldProblem, isInstant } from "../core/field-problem.ts";
import { MAX_INSTANT_MS } from "../core/index.ts";
import {
  compareUtf8,
  idProblem,
  MAX_LEASE_ID_BYTES,
  nameProblem,
  printableId,
  shown,
} from "../placement/names.ts";
import { type Approval, decodeSignature, payloadOf, signatureVerifies } from "./approval.ts";
import {
  type ApprovalRequest,
  approvalId,
  approvalRequestProblem,
  approvalWindowProblem,
  encodeApproval,
} from "./approval-payload.ts";
import { listFailures, type SignatureFault, type VerificationFailure } from "./failures.ts";
import { effectiveTier, isInForce, type Quorum, type SafetyTier } from "./quorum-definition.ts";

export const MAX_APPROVALS = 512;

/** Bounds the signature checks that one caller can cause with approvals of one signer. */
export const MAX_APPROVALS_PER_SIGNER = 4;

export interface QuorumRequest {
  readonly quorum: Quorum;
  /** Names the lease in the answer. What the signatures must cover is `request`. */
  readonly leaseId: string;
  readonly request: ApprovalRequest;
  readonly approvals: readonly Approval[];
  readonly nowMs: number;
  readonly traceId: string;
  /** Ids of approvals that another attempt used before; none when absent. */
  readonly consumedIds?: ReadonlySet<string>;
}

/** An approval that counts. Its id is what must be marked as used. */
export interface AcceptedApproval {
  readonly signerId: string;
  readonly approvalId: string;
  readonly notAfterMs: number;
}

export interface QuorumVerification {
  readonly leaseId: string;
  /** The tier that was applied; an unknown one is applied as Dangerous. */
  readonly tier: SafetyTier;
  readonly required: number;
  readonly received: number;
  readonly passed: boolean;
  readonly failures: readonly VerificationFailure[];
  /** How many failures did not fit into the list. */
  readonly failuresOmitted: number;
  /** Ordered by signer, then id. A signer with two good approvals is here twice and counted once. */
  readonly accepted: readonly AcceptedApproval[];
  readonly traceId: string;
  /** `nowMs` as an ISO 8601 instant; empty when `nowMs` was none. */
  readonly timestamp: string;
}

export function verifyQuorum(input: QuorumRequest): QuorumVerification {
  const steps = verification(input);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** The same, with a pause after each approval: for a process that has others to serve meanwhile. */
export async function verifyQuorumInSteps(
  input: QuorumRequest,
  pause: () => Promise<void>,
): Promise<QuorumVerification> {
  const steps = verification(input);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await pause();
  }
}

/** Yields after each approval that was checked. */
function* verification(input: QuorumRequest): Generator<void, QuorumVerification, void> {
  const problem = inputProblem(input);
  if (problem !== null) {
    return conclude(input, [], [{ kind: "InvalidRequest", code: "LC_INVALID_REQUEST", problem }]);
  }
  const accepted: AcceptedApproval[] = [];
  const failures: VerificationFailure[] = [];
  for (const [signerId, approvals] of bySigner(input.approvals)) {
    if (input.quorum.keysOf(signerId) === undefined) {
      failures.push({ kind: "UnknownSigner", code: "LC_UNKNOWN_SIGNER", signerId });
    } else if (approvals.length > MAX_APPROVALS_PER_SIGNER) {
      failures.push(invalidSignature(signerId, "too-many"));
    } else {
      for (const approval of approvals) {
        const verdict = judge(input, approval);
        if ("kind" in verdict) failures.push(verdict);
        else accepted.push(verdict);
        yield;
      }
    }
  }
  return conclude(input, accepted, failures);
}

/** One approval of a known signer. Authenticity comes first: only what was signed is worth explaining. */
function judge(input: QuorumRequest, approval: Approval): AcceptedApproval | VerificationFailure {
  const { quorum, request, nowMs } = input;
  const { signerId, notBeforeMs, notAfterMs } = approval;
  const signature = decodeSignature(approval.signature);
  if (signature === null || approvalWindowProblem(approval) !== null)
    return invalidSignature(signerId, "malformed");
  const payload = payloadOf(request, approval);
  const signedBytes = encodeApproval(payload);
  const signedBy = quorum.keysOf(signerId)?.find(({ key }) => signatureVerifies(key, signedBytes, signature));
  if (signedBy === undefined) return invalidSignature(signerId, "mismatch");
  if (!isInForce(signedBy, nowMs)) return { kind: "KeyNotValid", code: "LC_KEY_NOT_VALID", signerId };
  if (nowMs < notBeforeMs) {
    return { kind: "ApprovalNotYetValid", code: "LC_APPROVAL_NOT_YET_VALID", signerId, notBeforeMs };
  }
  if (nowMs >= notAfterMs)
    return { kind: "ApprovalExpired", code: "LC_APPROVAL_EXPIRED", signerId, notAfterMs };
  const id = approvalId(payload, signerId);
  if (input.consumedIds?.has(id)) return { kind: "ApprovalReplayed", code: "LC_APPROVAL_REPLAYED", signerId };
  return { signerId, approvalId: id, notAfterMs };
}

function conclude(
  input: QuorumRequest,
  accepted: readonly AcceptedApproval[],
  found: readonly VerificationFailure[],
): QuorumVerification {
  const { quorum, leaseId, request, nowMs, traceId } = input;
  const tier = effectiveTier(request?.tier);
  const required = quorum.requiredFor(tier);
  const received = new Set(accepted.map(({ signerId }) => signerId)).size;
  const enough = received >= required;
  const { failures, omitted } = listFailures(
    found,
    enough ? null : { kind: "BelowQuorum", code: "LC_BELOW_QUORUM", required, received },
  );
  return Object.freeze({
    leaseId,
    tier,
    required,
    received,
    passed: enough && (quorum.mode === "lenient" || failures.length === 0),
    failures,
    failuresOmitted: omitted,
    accepted: Object.freeze([...accepted].sort(compareAccepted)),
    traceId,
    timestamp: isInstant(nowMs) ? new Date(nowMs).toISOString() : "",
  });
}

/** The approvals of each signer, exact repeats removed, so that sending one twice changes nothing. */
function bySigner(approvals: readonly Approval[]): ReadonlyMap<string, readonly Approval[]> {
  const groups = new Map<string, Map<string, Approval>>();
  for (const approval of approvals) {
    const signerId = printableId(approval?.signerId);
    const group = groups.get(signerId) ?? new Map<string, Approval>();
    group.set(fingerprint(approval), approval);
    groups.set(signerId, group);
  }
  return new Map([...groups].map(([signerId, group]) => [signerId, [...group.values()]]));
}

/** Equal only for approvals that must get the same verdict: a number never equals its text. */
function fingerprint(approval: Approval): string {
  const { signature, notBeforeMs, notAfterMs } = approval ?? {};
  const parts = [notBeforeMs, notAfterMs].map((instant) => (typeof instant === "number" ? instant : "?"));
  return `${parts.join(" ")} ${typeof signature === "string" ? signature : "?"}`;
}

function inputProblem({ leaseId, request, approvals, nowMs, traceId }: QuorumRequest): FieldProblem | null {
  const leaseProblem = nameProblem(leaseId, MAX_LEASE_ID_BYTES);
  if (leaseProblem !== null) return { field: "leaseId", message: leaseProblem };
  const traceProblem = idProblem(traceId);
  if (traceProblem !== null) return { field: "traceId", message: traceProblem };
  if (!isInstant(nowMs)) {
    return {
      field: "nowMs",
      message: `must be whole milliseconds from 0 to ${MAX_INSTANT_MS}, got ${shown(nowMs)}`,
    };
  }
  if (!Array.isArray(approvals) || approvals.length > MAX_APPROVALS) {
    const got = Array.isArray(approvals) ? `${approvals.length}` : shown(approvals);
    return {
      field: "approvals",
      message: `must be an array of at most ${MAX_APPROVALS} approvals, got ${got}`,
    };
  }
  const problem = approvalRequestProblem(request);
  return problem === null ? null : { field: `request.${problem.field}`, message: problem.message };
}

function invalidSignature(signerId: string, fault: SignatureFault): VerificationFailure {
  return { kind: "InvalidSignature", code: "LC_INVALID_SIGNATURE", signerId, fault };
}

function compareAccepted(a: AcceptedApproval, b: AcceptedApproval): number {
  return compareUtf8(a.signerId, b.signerId) || compareUtf8(a.approvalId, b.approvalId);
}
