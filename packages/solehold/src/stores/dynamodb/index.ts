/** `solehold/dynamodb`: leases in a table of DynamoDB, by signed requests. */
export type { AwsCredentials } from "../support/aws-signing.ts";
export { openDynamodbStore } from "./open.ts";
export type { DynamodbStoreOptions } from "./options.ts";
