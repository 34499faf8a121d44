export * from "./approvals/index.ts";
export * from "./audit/index.ts";
export * from "./codes.ts";
export { type LeaseDecisionEntry, leaseIdOf } from "./decision-entry.ts";
export * from "./gate.ts";
export { collectionObstacle, repairGeneration } from "./maintenance.ts";
export { type RecordEvent, type RecordListener, watchRecords } from "./record-events.ts";
export * from "./service.ts";
