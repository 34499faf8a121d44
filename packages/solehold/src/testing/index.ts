/** `solehold/testing`: one suite that every store passes, Solehold's own and yours. */
export { describeStore, storeConformanceCases, type TestApi } from "./runner.ts";
export type { FaultyClient, StoreCase, StoreSubject } from "./subject.ts";
