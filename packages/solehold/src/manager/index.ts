export type { CollectionReport } from "./collector.ts";
export * from "./corrupt-record-error.ts";
export * from "./manager.ts";
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
} from "./requests.ts";
export { hashToken, sha256 } from "./secrets.ts";
export * from "./view.ts";
