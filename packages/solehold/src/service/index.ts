export * from "./audit/index.ts";
export * from "./codes.ts";
export * from "./gate.ts";
export * from "./service.ts";
