/** `solehold/testing`: one suite that every store passes, Solehold's own and yours. */
export { runKitProcess } from "./process-worker.ts";
export {
  describeLeases,
  describeStore,
  leaseConformanceCases,
  storeConformanceCases,
  type TestApi,
} from "./runner.ts";
export type { FaultyClient, KitChild, StoreCase, StoreSubject } from "./store-under-test.ts";
