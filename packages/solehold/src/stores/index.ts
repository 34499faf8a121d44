export * from "./contract.ts";
export * from "./memory.ts";
export * from "./selection.ts";
