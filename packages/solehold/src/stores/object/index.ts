/** `solehold/object`: leases in object storage: S3, Azure Blob, or any HTTP server with strong ETags. */
export type { AzurePlace } from "./azure.ts";
export type { EtagPlace } from "./etag-http.ts";
export { type ObjectPlace, type ObjectStoreOptions, openObjectStore, openObjects } from "./open.ts";
export type { ConditionalObjects, PutOptions, PutOutcome } from "./port.ts";
export type { S3Credentials, S3Place } from "./s3.ts";
export { ObjectStore } from "./store.ts";
