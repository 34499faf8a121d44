/**
 * One item a key: the tenant is the partition key, the name the sort key, so that a listing is a query of one partition,
 * consistent and in order. Writes are conditional on the item's version. Reads are strongly consistent.
 */
import type { LeaseKey } from "../../core/index.ts";
import type {
  ConditionalPut,
  ConditionalReply,
  GetReply,
  ListRange,
  ListReply,
  SimpleBackend,
  StoredValue,
} from "../../store/index.ts";
import type { DynamodbClient } from "./client.ts";

interface Item {
  readonly tenant: { readonly S: string };
  readonly name: { readonly S: string };
  readonly version?: { readonly S?: string };
  readonly record?: { readonly S?: string };
}

/** Shorter than any version. */
const NO_VERSION = "none";
const CONDITION_FAILED = "ConditionalCheckFailedException";

export class DynamodbBackend implements SimpleBackend {
  readonly #client: DynamodbClient;
  readonly #table: string;

  constructor(client: DynamodbClient, table: string) {
    this.#client = client;
    this.#table = table;
  }

  async get(key: LeaseKey): Promise<GetReply> {
    const request = { TableName: this.#table, Key: keyOf(key), ConsistentRead: true };
    const { body, timeMs } = await this.#client.send("GetItem", request);
    return { timeMs, value: body.Item === undefined ? null : storedOf(body.Item as Item) };
  }

  putIf({ key, expected, text, newVersion }: ConditionalPut): Promise<ConditionalReply> {
    const Item = { ...keyOf(key), version: { S: newVersion }, record: { S: text } };
    return this.#write("PutItem", { Item }, expected, newVersion);
  }

  deleteIf(key: LeaseKey, expected: string): Promise<ConditionalReply> {
    return this.#write("DeleteItem", { Key: keyOf(key) }, expected, null);
  }

  async list({ tenant, prefix, after, limit }: ListRange): Promise<ListReply> {
    const values: Record<string, { readonly S: string }> = {};
    const conditions: string[] = [];
    if (tenant !== null) {
      conditions.push("#tenant = :tenant");
      values[":tenant"] = { S: tenant };
    }
    if (prefix !== "") {
      conditions.push("begins_with(#name, :prefix)");
      values[":prefix"] = { S: prefix };
    }
    const expression = tenant === null ? "FilterExpression" : "KeyConditionExpression";
    const request = {
      TableName: this.#table,
      ConsistentRead: true,
      Limit: limit,
      ...(after !== null && { ExclusiveStartKey: keyOf(after) }),
      ...(conditions.length > 0 && {
        [expression]: conditions.join(" and "),
        ExpressionAttributeNames: {
          ...(tenant !== null && { "#tenant": "tenant" }),
          ...(prefix !== "" && { "#name": "name" }),
        },
        ExpressionAttributeValues: values,
      }),
    };
    const { body, timeMs } = await this.#client.send(tenant === null ? "Scan" : "Query", request);
    const items = (body.Items as readonly Item[]).map((item) => ({ key: nameOf(item), ...storedOf(item) }));
    const last = body.LastEvaluatedKey as Item | undefined;
    return { timeMs, items, next: last === undefined ? null : nameOf(last) };
  }

  async close(): Promise<void> {
    this.#client.close();
  }

  async #write(
    action: string,
    what: object,
    expected: string | null,
    version: string | null,
  ): Promise<ConditionalReply> {
    const request = {
      TableName: this.#table,
      ...what,
      ...conditionOf(expected),
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
    const { error, body, timeMs } = await this.#client.send(action, request, [CONDITION_FAILED]);
    if (error === null) return { timeMs, kind: "done", ...(version !== null && { version }) };
    // Absent where there is no item, and where the server does not know this option: then it is read.
    const item = body.Item as Item | undefined;
    return { timeMs, kind: "conflict", ...(item !== undefined && { current: storedOf(item) }) };
  }
}

function keyOf({ tenant, name }: LeaseKey): Item {
  return { tenant: { S: tenant }, name: { S: name } };
}

function nameOf({ tenant, name }: Item): LeaseKey {
  return { tenant: tenant.S, name: name.S };
}

/** An item that somebody else made or changed may have no version; as damage it can be listed and replaced. */
function storedOf({ version, record }: Item): StoredValue {
  return { version: version?.S ?? NO_VERSION, text: record?.S ?? "" };
}

function conditionOf(expected: string | null): object {
  if (expected !== null && expected !== NO_VERSION)
    return {
      ConditionExpression: "#version = :expected",
      ExpressionAttributeNames: { "#version": "version" },
      ExpressionAttributeValues: { ":expected": { S: expected } },
    };
  if (expected === null)
    return {
      ConditionExpression: "attribute_not_exists(#tenant)",
      ExpressionAttributeNames: { "#tenant": "tenant" },
    };
  return {
    ConditionExpression: "attribute_exists(#tenant) and attribute_not_exists(#version)",
    ExpressionAttributeNames: { "#tenant": "tenant", "#version": "version" },
  };
}
