/**
 * `solehold/seeds`: the five systems that Solehold came from, each in its own words, thin over the one pipeline.
 *
 * | document | what it describes | here |
 * | --- | --- | --- |
 * | 000 | generic lease service | `LeaseService` |
 * | 001 | lease manager for actors | `LeaseManager`, `MemoryLeaseManager`, `StoreLeaseManager` |
 * | 002 | decision gate for work orders | `evaluatePolicy`, `computeDecision`, `decideLease`, `LeaseGate` |
 * | 003 | coordinator selection and quorum | `LeaseCoordinatorService` |
 * | 004 | serverless writer lease | `WriterLeaseStore`, `WriterInstance` |
 */
export type { Approval, ApprovalPayload, ApprovalRequest } from "../approvals/index.ts";
export {
  exportPublicKey,
  generateSigningKey as generateKeyPair,
  type QuorumVerification,
  type SigningKeyPair,
  signApproval,
  type VerificationFailure,
} from "../approvals/index.ts";
export { openStore } from "../client/connect.ts";
export { createPolicy, type LeasePolicy, PURPOSES, type Purpose } from "../core/index.ts";
export { ManualEnv } from "../env/index.ts";
export { CoordinatorError } from "../placement/codes.ts";
export type { CoordinatorCandidate, CoordinatorSelection, SelectionRefusal } from "../placement/index.ts";
export { type LeaseStore, MemoryStore } from "../store/index.ts";
export * from "../writer/index.ts";
export * from "./decision-gate.ts";
export * from "./lease-coordinator-service.ts";
export * from "./lease-gate.ts";
export * from "./lease-manager.ts";
export * from "./lease-service.ts";
export * from "./lease-service-types.ts";
export * from "./seed-policies.ts";
export * from "./writer-lease-json.ts";
