export {
  ApprovalCheck,
  type ApprovalCheckOptions,
  approvalRequestFor,
  type GuardedCommand,
} from "./approval-check.ts";
export { withApprovals } from "./approvals.ts";
export { type AuditLayerOptions, withAudit } from "./audit.ts";
export { LiveLeases, type LiveLeasesOptions } from "./live-leases.ts";
export { withQuota } from "./quota.ts";
export { type RecordEvent, type RecordListener, watchRecords } from "./record-events.ts";
export * from "./service.ts";
export * from "./service-codes.ts";
