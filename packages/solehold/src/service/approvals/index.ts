export {
  ApprovalGuard,
  type ApprovalGuardOptions,
  approvalRequestFor,
  type GuardedCommand,
  type GuardVerdict,
  type PresentedApprovals,
} from "./guard.ts";
export {
  ApprovalPolicy,
  type ApprovalPolicyFile,
  type ApprovalPolicyResult,
  type ApprovalRuleConfig,
  type GuardedAction,
  type PolicyProblem,
} from "./policy.ts";
