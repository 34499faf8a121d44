export type { PresentedApprovals } from "../../manager/index.ts";
export {
  ApprovalGuard,
  type ApprovalGuardOptions,
  approvalRequestFor,
  type GuardedCommand,
  type GuardVerdict,
} from "./guard.ts";
export {
  ApprovalPolicy,
  type ApprovalPolicyFile,
  type ApprovalPolicyResult,
  type ApprovalRuleConfig,
  type GuardedAction,
  type PolicyProblem,
} from "./policy.ts";
