/** Opening: from options to a store that has seen its table. */
import { delay, type Env, realEnv } from "../../env/index.ts";
import { type LeaseStore, SimpleStore, type StoreError } from "../../store/index.ts";
import { assertOptions } from "../support/options.ts";
import { DynamodbBackend } from "./backend.ts";
import { type DynamodbClient, dynamodbClient } from "./client.ts";
import { type DynamodbStoreOptions, placeOf, problem } from "./options.ts";

const KEY_SCHEMA = [
  { AttributeName: "tenant", KeyType: "HASH" },
  { AttributeName: "name", KeyType: "RANGE" },
];
const ATTRIBUTES = KEY_SCHEMA.map(({ AttributeName }) => ({ AttributeName, AttributeType: "S" }));
/** A table on AWS is there after some seconds. */
const TABLE_TIMEOUT_MS = 60_000;
const LOOK_AGAIN_MS = 500;

interface Table {
  readonly TableStatus: string;
  readonly KeySchema: typeof KEY_SCHEMA;
  readonly AttributeDefinitions: typeof ATTRIBUTES;
  readonly Replicas?: readonly unknown[];
  readonly MultiRegionConsistency?: string;
}

/** Rejects with a StoreError of one line that says what to do. */
export async function openDynamodbStore(options: DynamodbStoreOptions): Promise<LeaseStore> {
  const known = "url credentials createTable timeoutMs concurrency pollMs clockSkewMs variables";
  assertOptions("openDynamodbStore", options, '{ url: "dynamodb://my-table?region=eu-west-1" }', known);
  const { env = realEnv, timeoutMs = 5_000, concurrency = 64, clockSkewMs = 2_000, pollMs } = options;
  const { createTable = false } = options;
  if (typeof createTable !== "boolean")
    throw problem(`createTable must be true or false, got '${String(createTable)}'`);
  const place = placeOf(options);
  const client = await dynamodbClient(place, { env, timeoutMs, maxSockets: 2 * concurrency });
  const store = new SimpleStore({
    name: "dynamodb",
    backend: new DynamodbBackend(client, place.table),
    // Emulators and others that speak its protocol promise nothing that could be looked up.
    durable: /\.amazonaws\.com(\.cn)?$/.test(new URL(place.endpoint).hostname),
    clock: "reply",
    clockGranularityMs: 1_000,
    ...{ clockSkewMs, timeoutMs, concurrency, env, ...(pollMs !== undefined && { pollMs }) },
  });
  try {
    const ifMissing = createTable ? "create" : "fail";
    assertUsable(place.table, await activeTable(client, env, place.table, ifMissing));
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function activeTable(
  client: DynamodbClient,
  env: Env,
  table: string,
  ifMissing: "create" | "fail",
): Promise<Table> {
  const deadlineMs = env.monotonicMs() + TABLE_TIMEOUT_MS;
  for (;;) {
    const { body } = await client.send("DescribeTable", { TableName: table }, ["ResourceNotFoundException"]);
    const found = body.Table as Table | undefined;
    if (found?.TableStatus === "ACTIVE" || found?.TableStatus === "UPDATING") return found;
    if (found === undefined && ifMissing === "fail") throw missing(table);
    if (env.monotonicMs() > deadlineMs) throw problem(`table '${table}' did not become active`);
    const request = {
      TableName: table,
      KeySchema: KEY_SCHEMA,
      AttributeDefinitions: ATTRIBUTES,
      BillingMode: "PAY_PER_REQUEST",
    };
    // Somebody else may be creating it at this moment.
    if (found === undefined) await client.send("CreateTable", request, ["ResourceInUseException"]);
    await delay(env, LOOK_AGAIN_MS);
  }
}

function missing(table: string): StoreError {
  return problem(
    `table '${table}' is missing: pass createTable: true, or run aws dynamodb create-table --table-name ${table} ` +
      "--attribute-definitions AttributeName=tenant,AttributeType=S AttributeName=name,AttributeType=S " +
      "--key-schema AttributeName=tenant,KeyType=HASH AttributeName=name,KeyType=RANGE --billing-mode PAY_PER_REQUEST",
  );
}

function assertUsable(table: string, found: Table): void {
  const isOurs = KEY_SCHEMA.every(
    ({ AttributeName, KeyType }) =>
      found.KeySchema.some((key) => key.AttributeName === AttributeName && key.KeyType === KeyType) &&
      found.AttributeDefinitions.some(
        (each) => each.AttributeName === AttributeName && each.AttributeType === "S",
      ),
  );
  if (!isOurs)
    throw problem(`table '${table}' has other keys than 'tenant' (HASH) and 'name' (RANGE): use another`);
  const isGlobal = (found.Replicas ?? []).length > 0 && found.MultiRegionConsistency !== "STRONG";
  if (isGlobal)
    throw problem(
      `table '${table}' is a global table, where two regions can grant the same lease: use one of a single region, ` +
        "or one with strong multi-Region consistency",
    );
}
