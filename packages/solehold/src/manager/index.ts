export type { CollectionReport } from "./collector.ts";
export * from "./corrupt-record-error.ts";
export * from "./manager.ts";
export * from "./outcome.ts";
export * from "./requests.ts";
export { hashToken, sha256 } from "./secrets.ts";
export * from "./view.ts";
