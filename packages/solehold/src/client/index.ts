export { MAX_LEASES_IN_SET } from "./acquire-all.ts";
export * from "./connect.ts";
export * from "./errors.ts";
export * from "./lease.ts";
export type * from "./lease-context.ts";
export * from "./lease-diff.ts";
export * from "./lease-set.ts";
export * from "./lease-watcher.ts";
export * from "./leases.ts";
export type { ReleaseResult } from "./loss.ts";
export type {
  AcquireAllOptions,
  AcquireOptions,
  OncePerOptions,
  OncePerResult,
  TryAcquireOptions,
  WatchOptions,
} from "./options.ts";
