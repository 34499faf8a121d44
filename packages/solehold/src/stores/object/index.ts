/** `solehold/object`: leases in object storage: S3, Azure Blob, or any HTTP server with strong ETags. */

export type { AwsCredentials } from "../support/aws-signing.ts";
export type { CredentialSource, Expiring } from "../support/expiring-credentials.ts";
export type { AzureCredentials, AzurePlace } from "./azure.ts";
export type { EtagPlace } from "./etag-http.ts";
export type { ConditionalObjects, PutOutcome } from "./objects.ts";
export { type ObjectStoreOptions, openObjectStore, openObjects } from "./open.ts";
export type { S3Place } from "./s3.ts";
export type { ObjectPlace } from "./urls.ts";
