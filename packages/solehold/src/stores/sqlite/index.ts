/** `solehold/embedded`: the durable store of one machine, on the SQLite that Node brings. */
export { checkEmbeddedFolder, type EmbeddedStoreOptions, openEmbeddedStore } from "./open.ts";
export type { CheckReport } from "./protocol.ts";
export { EmbeddedStore } from "./store.ts";
