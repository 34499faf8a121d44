/** Approvals: signed consent to one request, and the quorum that makes it count. Pure. */
export type { Approval, PresentedApprovals } from "./approval.ts";
export { payloadOf, signApproval } from "./approval.ts";
export type { ApprovalPayload, ApprovalRequest } from "./approval-payload.ts";
export {
  approvalId,
  approvalPayloadProblem,
  approvalRequestProblem,
  encodeApproval,
  MAX_APPROVAL_WINDOW_MS,
} from "./approval-payload.ts";
export {
  ApprovalPolicy,
  type ApprovalPolicyFile,
  type ApprovalPolicyResult,
  type ApprovalRuleConfig,
  type ApprovalRules,
  type GuardedAction,
} from "./approval-policy.ts";
export type { FailureKind, SignatureFault, VerificationFailure } from "./failures.ts";
export { describeFailure, MAX_FAILURES } from "./failures.ts";
export type { AcceptedApproval, QuorumRequest, QuorumVerification } from "./quorum.ts";
export { MAX_APPROVALS, MAX_APPROVALS_PER_SIGNER, verifyQuorum, verifyQuorumInSteps } from "./quorum.ts";
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
