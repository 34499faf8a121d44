export * from "./write-gate.ts";
export * from "./writer-env.ts";
export * from "./writer-errors.ts";
export * from "./writer-lease.ts";
export * from "./writer-lease-store.ts";
