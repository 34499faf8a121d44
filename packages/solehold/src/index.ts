export * from "./client/index.ts";
export * from "./core/index.ts";
export { type Env, ManualEnv, realEnv, type Timer } from "./env/index.ts";
export * from "./manager/index.ts";
export * from "./stores/index.ts";
