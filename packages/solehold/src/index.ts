// The main entry: what a program needs to hold leases. Stores, guards, approvals, audit, layers and the test kit have
// entries of their own. `connect` loads the store that its URL names, and that store's client, when it is called. The
// names here are pinned by test/public-api.test.ts: values, results and what several calls have in common. The options of
// one call are reached by it, as in `Parameters<Leases["runOncePer"]>[1]`.
export { type ConnectOptions, connect, openStore } from "./client/connect.ts";
export {
  LeaseDeniedError,
  LeaseError,
  type LeaseErrorCode,
  LeaseHeldError,
  LeaseLostError,
  LeaseRefusedError,
  LeasesClosedError,
  LeaseTimeoutError,
  LeaseUnavailableError,
  type LossReason,
} from "./client/errors.ts";
export { Lease } from "./client/lease.ts";
export type { LeaseHandleState } from "./client/lease-context.ts";
export type { LeaseChange } from "./client/lease-diff.ts";
export { LeaseSet } from "./client/lease-set.ts";
export { type AcquireAttempt, Leases } from "./client/leases.ts";
export type { ReleaseResult } from "./client/loss.ts";
export type { AcquireOptions, OncePerResult } from "./client/options.ts";
export type { Duration } from "./core/duration.ts";
export { formatFence, parseFence } from "./core/fence.ts";
export type { LeaseKey } from "./core/key.ts";
export type { LeasePolicy } from "./core/policy.ts";
export type { Purpose } from "./core/purpose.ts";
export type { Reason } from "./core/reasons.ts";
export type { LeaseExecutor, WaitingDetails } from "./executor/executor.ts";
export { StoreExecutor } from "./executor/store-executor.ts";
export type { LeaseView } from "./executor/view.ts";
export { type LeaseStore, MemoryStore, StoreError } from "./store/index.ts";
