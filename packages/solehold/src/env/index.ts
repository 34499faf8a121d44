export * from "./env.ts";
export * from "./manual-env.ts";
export * from "./random-ids.ts";
export * from "./real-env.ts";
