export * from "./corrupt-record-error.ts";
export * from "./executor.ts";
export type { Explanation } from "./explain.ts";
export * from "./outcome.ts";
export { repairGeneration } from "./repair.ts";
export {
  type AcquireRequest,
  type BreakRequest,
  commandOf,
  type HandoffRequest,
  type LeaseRequest,
  MAX_IDEMPOTENCY_KEY_LENGTH,
  MAX_PRIORITY,
  type NextWaiter,
  type ReleaseRequest,
  type RenewRequest,
  type ResumeRequest,
  type RevokeRequest,
  requestProblem,
  type UseRequest,
} from "./request.ts";
export * from "./store-executor.ts";
export { hashToken, sha256 } from "./tokens.ts";
export { type CollectionReport, collectionObstacle } from "./tombstone-gc.ts";
export * from "./view.ts";
export {
  type OwnTicket,
  TICKET_LIFE_MS,
  TICKET_PREFIX,
  type WaitTicket,
  type WaitTickets,
} from "./wait-tickets.ts";
