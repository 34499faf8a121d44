export * from "./corrupt-record-error.ts";
export { collectionObstacle, repairGeneration } from "./maintenance.ts";
export * from "./outcome.ts";
export {
  type AcquireRequest,
  acquireCommand,
  type BreakRequest,
  type HandoffRequest,
  type LeaseRequest,
  MAX_IDEMPOTENCY_KEY_LENGTH,
  type PresentedApprovals,
  type ReleaseRequest,
  type RenewRequest,
  type RequestOf,
  type ResumeRequest,
  type RevokeRequest,
  requestProblem,
  type UseRequest,
  type Writable,
} from "./request.ts";
export * from "./store-executor.ts";
export { hashToken, sha256 } from "./tokens.ts";
export type { CollectionReport } from "./tombstone-gc.ts";
export * from "./view.ts";
