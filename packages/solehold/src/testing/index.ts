/** `solehold/testing`: one suite that every store passes, Solehold's own and yours. */
export {
  describeLeases,
  describeStore,
  leaseConformanceCases,
  storeConformanceCases,
  type TestApi,
} from "./runner.ts";
export type { FaultyClient, StoreCase, StoreSubject } from "./subject.ts";
