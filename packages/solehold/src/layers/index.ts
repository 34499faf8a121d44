export {
  ApprovalGuard,
  type ApprovalGuardOptions,
  approvalRequestFor,
  type GuardedCommand,
  type GuardVerdict,
} from "./approval-check.ts";
export { type LeaseDecisionEntry, leaseIdOf } from "./audit-entry.ts";
export { type RecordEvent, type RecordListener, watchRecords } from "./record-events.ts";
export * from "./service.ts";
export * from "./service-codes.ts";
