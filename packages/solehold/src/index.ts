// The main entry: what a program needs to hold leases. Kept small: stores beyond memory, the service, the test kit,
// the record's text form and the numbers of reasons have entries of their own, and the clients of stores load when
// they are asked for.
export * from "./client/index.ts";
export * from "./core/command.ts";
export * from "./core/compute.ts";
export * from "./core/decide.ts";
export * from "./core/duration.ts";
export * from "./core/evaluate.ts";
export * from "./core/fence.ts";
export * from "./core/instant.ts";
export * from "./core/key.ts";
export * from "./core/policy.ts";
export * from "./core/purpose.ts";
export type { Reason } from "./core/reasons.ts";
export {
  type Handoff,
  type IdempotencyMark,
  isLiveAt,
  type LeasePhase,
  type LeaseRecord,
  type LeaseState,
  type Metadata,
  phaseAt,
  type Reservation,
  recordFence,
} from "./core/record.ts";
export * from "./core/validity.ts";
export { type Env, realEnv, type Timer } from "./env/index.ts";
export * from "./executor/index.ts";
export * from "./store/index.ts";
