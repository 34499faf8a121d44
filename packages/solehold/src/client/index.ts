export * from "./connect.ts";
export * from "./errors.ts";
export * from "./lease.ts";
export type * from "./lease-context.ts";
export * from "./leases.ts";
export type { ReleaseResult } from "./loss.ts";
export type { AcquireOptions, CloseOptions, TryAcquireOptions } from "./options.ts";
export type { LivenessProbe } from "./probe.ts";
