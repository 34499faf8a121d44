// The main entry: what a program needs to hold leases, and the decisions behind it. Stores beyond memory, approvals, the
// audit, guards and the test kit have entries of their own. `connect` loads the store that its URL names, and that
// store's client, when it is called; everything else here is loaded with the entry.
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
  phaseAt,
  recordFence,
} from "./core/record.ts";
export * from "./core/validity.ts";
export { type Env, realEnv, type Timer } from "./env/index.ts";
export * from "./executor/index.ts";
export * from "./store/index.ts";
