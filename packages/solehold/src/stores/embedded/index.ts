/** `solehold/embedded`: the durable store of one machine, on the optional package lmdb. */
export { checkEmbeddedFolder } from "./check.ts";
export { type EmbeddedStoreOptions, openEmbeddedStore } from "./open.ts";
export { EmbeddedStore } from "./store.ts";
