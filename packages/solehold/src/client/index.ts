export * from "./connect.ts";
export * from "./errors.ts";
export * from "./fenced-resource.ts";
export * from "./lease.ts";
export * from "./leases.ts";
