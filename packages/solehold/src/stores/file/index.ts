/** `solehold/file`: leases in files on a local disk, in a format that others can read. */
export { type FileStoreOptions, openFileStore } from "./open.ts";
export type { FileStore } from "./store.ts";
