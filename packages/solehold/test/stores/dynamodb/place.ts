/** A dynalite of the test's own, and requests to it behind the store's back. */
import { AwsClient } from "aws4fetch";
import { openDynamodbStore } from "../../../src/stores/dynamodb/index.ts";
import type { DynamodbStoreOptions } from "../../../src/stores/dynamodb/options.ts";

export const VARIABLES = {
  AWS_REGION: "us-east-1",
  AWS_ACCESS_KEY_ID: "test",
  AWS_SECRET_ACCESS_KEY: "testtest",
};

export function urlOf(endpoint: string, table = "leases"): string {
  return `dynamodb://${table}?endpoint=${encodeURIComponent(endpoint)}`;
}

export function openOn(endpoint: string, options: Partial<DynamodbStoreOptions> = {}) {
  return openDynamodbStore({ url: urlOf(endpoint), variables: VARIABLES, createTable: true, ...options });
}

/** The reply's body; rejects on an error. */
export async function request(
  endpoint: string,
  action: string,
  body: object,
): Promise<Record<string, unknown>> {
  const client = new AwsClient({
    accessKeyId: "test",
    secretAccessKey: "testtest",
    region: "us-east-1",
    service: "dynamodb",
    retries: 0,
  });
  const headers = {
    "content-type": "application/x-amz-json-1.0",
    "x-amz-target": `DynamoDB_20120810.${action}`,
  };
  const response = await client.fetch(endpoint, { method: "POST", headers, body: JSON.stringify(body) });
  const reply = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(JSON.stringify(reply));
  return reply;
}
