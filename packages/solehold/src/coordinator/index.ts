/** Coordinator selection, approvals and quorums: pure decisions, no clock, no I/O. */
export type { Approval } from "./approval.ts";
export { payloadOf, signApproval } from "./approval.ts";
export type { ApprovalLedger, ApprovalUse, ApprovalUseOutcome } from "./approval-ledger.ts";
export type { ApprovalPayload, ApprovalRequest } from "./approval-payload.ts";
export {
  approvalId,
  approvalPayloadProblem,
  approvalRequestProblem,
  encodeApproval,
  MAX_APPROVAL_WINDOW_MS,
} from "./approval-payload.ts";
export type { CoordinatorCode, CoordinatorProblem } from "./codes.ts";
export { COORDINATOR_CODES, CoordinatorError } from "./codes.ts";
export type { FailureKind, SignatureFault, VerificationFailure } from "./failures.ts";
export { describeFailure, MAX_FAILURES } from "./failures.ts";
export { MAX_ID_BYTES, MAX_LEASE_ID_BYTES } from "./names.ts";
export type { AcceptedApproval, QuorumRequest, QuorumVerification } from "./quorum.ts";
export { MAX_APPROVALS, MAX_APPROVALS_PER_SIGNER, verifyQuorum } from "./quorum.ts";
export type {
  QuorumConfig,
  QuorumDefinition,
  QuorumMode,
  QuorumThresholds,
  SafetyTier,
  SignerConfig,
  SignerKeyConfig,
} from "./quorum-definition.ts";
export { DEFAULT_THRESHOLDS, effectiveTier, Quorum, SAFETY_TIERS } from "./quorum-definition.ts";
export type { Claim, SelectionAlgorithm } from "./rendezvous.ts";
export { claimsOn, rendezvousCost, SELECTION_ALGORITHMS } from "./rendezvous.ts";
export type {
  CoordinatorCandidate,
  CoordinatorRanking,
  CoordinatorSelection,
  EligibleCandidate,
  SelectionRefusal,
  SelectionRequest,
} from "./selection.ts";
export { DEFAULT_ALGORITHM, MAX_CANDIDATES, rankCoordinators, selectCoordinator } from "./selection.ts";
export type { LeaseCoordinatorOptions } from "./service.ts";
export { LeaseCoordinatorService } from "./service.ts";
export type { SigningKeyPair } from "./signing-key.ts";
export {
  exportPrivateKeyPem,
  exportPrivateKeySeed,
  exportPublicKey,
  generateSigningKey,
  importPrivateKey,
  importPublicKey,
  signingKeyFromSeed,
} from "./signing-key.ts";
