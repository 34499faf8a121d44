/** Opening: which table is used or made, what is refused, and with which words. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { openDynamodbStore } from "../../../src/stores/dynamodb/index.ts";
import { type Engine, startDynalite } from "../../engines/index.ts";
import { create, recordOf, rejection } from "../records.ts";
import { openOn, request, urlOf, VARIABLES } from "./place.ts";
import { problem, ScriptedServer, TABLE } from "./scripted-server.ts";

const URL_OF_AWS = "dynamodb://leases?region=eu-west-1";

describe("wrong options of the DynamoDB store", () => {
  const WRONG: readonly (readonly [string, object, RegExp])[] = [
    ["no url", {}, /url must look like dynamodb:.*got 'undefined'/],
    ["a url that is none", { url: "leases" }, /url must look like dynamodb:/],
    ["no table", { url: "dynamodb://?region=x" }, /url must (name a table|look like)/],
    ["a table that cannot be", { url: "dynamodb://a b?region=x" }, /url must (name a table|look like)/],
    ["a path", { url: "dynamodb://leases/there?region=x" }, /url must name a table/],
    ["credentials in the url", { url: "dynamodb://me:s3cret@leases?region=x" }, /must not carry credentials/],
    [
      "an unknown option",
      { url: "dynamodb://leases?zone=x" },
      /unknown option 'zone': it may have region and endpoint/,
    ],
    ["no region", { url: "dynamodb://leases", variables: {} }, /region must be named/],
    [
      "a wrong endpoint",
      { url: "dynamodb://leases?region=x&endpoint=host" },
      /endpoint must look like https:/,
    ],
    ["no credentials", { url: URL_OF_AWS, variables: {} }, /there are no credentials: set AWS_ACCESS_KEY_ID/],
    ["half a yes", { url: URL_OF_AWS, createTable: "yes" }, /createTable must be true or false, got 'yes'/],
    ["no time", { url: URL_OF_AWS, timeoutMs: 0 }, /timeoutMs must be a whole number from 1/],
    ["half a call", { url: URL_OF_AWS, concurrency: 0.5 }, /concurrency must be a whole number from 1/],
    [
      "a skew that is none",
      { url: URL_OF_AWS, clockSkewMs: -1 },
      /clockSkewMs must be a whole number from 0/,
    ],
  ];

  it.each(WRONG)("%s", async (_, options, words) => {
    const error = await rejection(openDynamodbStore({ variables: VARIABLES, ...options } as never));
    expect(error).toMatchObject({ name: "StoreError", kind: "config", outcome: "not-applied" });
    expect(error.message).toMatch(words);
    expect(error.message).not.toContain("s3cret");
  });
});

describe("opening a DynamoDB store on dynalite", () => {
  let server: Engine;
  beforeAll(async () => {
    server = await startDynalite();
  });
  afterAll(() => server?.stop());

  it("shows the command that makes a missing table, and makes it on request, for many at once", async () => {
    const url = urlOf(server.url, "made");
    const error = await rejection(openOn(server.url, { url, createTable: false }));
    expect(error).toMatchObject({ kind: "config", outcome: "not-applied" });
    expect(error.message).toMatch(
      /'made' is missing: pass createTable: true, or run aws dynamodb create-table/,
    );
    const stores = await Promise.all([1, 2, 3].map(() => openOn(server.url, { url })));
    await create(stores[0]!, recordOf("first"));
    for (const store of stores) await store.close();
    const found = await request(server.url, "DescribeTable", { TableName: "made" });
    expect(found).toMatchObject({ Table: { BillingModeSummary: { BillingMode: "PAY_PER_REQUEST" } } });
  });

  it("refuses a table with other keys", async () => {
    await request(server.url, "CreateTable", {
      TableName: "theirs",
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
      BillingMode: "PAY_PER_REQUEST",
    });
    const error = await rejection(openOn(server.url, { url: urlOf(server.url, "theirs") }));
    expect(error).toMatchObject({
      kind: "config",
      message: expect.stringContaining("has other keys than 'tenant'"),
    });
  });

  it("declares a clock of whole seconds whose front ends may differ, and claims no durability off AWS", async () => {
    const store = await openOn(server.url);
    expect(store.capabilities).toMatchObject({
      durable: false,
      clock: "reply",
      clockGranularityMs: 1_000,
      clockSkewMs: 2_000,
      watch: false,
    });
    await store.close();
  });
});

describe("opening a DynamoDB store", () => {
  let server: ScriptedServer;
  beforeEach(async () => {
    server = await ScriptedServer.start();
  });
  afterEach(() => server.stop());

  it("says who does not answer", async () => {
    const { url } = server;
    await server.stop();
    const error = await rejection(openOn(url));
    expect(error).toMatchObject({ kind: "unreachable", outcome: "not-applied" });
    expect(error.message).toContain(`DynamoDB table 'leases' at ${url}: nothing listens there`);
  });

  it("refuses a global table, where two regions could grant the same lease, unless it is strongly consistent", async () => {
    const global = { ...TABLE, Replicas: [{ RegionName: "eu-west-1" }] };
    server.answer = () => ({ body: { Table: global } });
    const error = await rejection(openOn(server.url));
    expect(error).toMatchObject({ kind: "config", message: expect.stringContaining("is a global table") });
    server.answer = () => ({ body: { Table: { ...global, MultiRegionConsistency: "STRONG" } } });
    await expect(openOn(server.url)).resolves.toBeDefined();
  });

  it("says which rights are missing", async () => {
    server.answer = () => problem("AccessDeniedException", "no identity-based policy allows it");
    const error = await rejection(openOn(server.url));
    expect(error).toMatchObject({ kind: "auth", outcome: "not-applied" });
    expect(error.message).toMatch(
      /no identity-based policy.*allow DescribeTable, GetItem, PutItem, DeleteItem, Query/,
    );
  });

  it("takes credentials from a function, and asks again before they end and when they are refused", async () => {
    let asked = 0;
    const credentials = async () => {
      asked += 1;
      const expiresAt = asked === 1 ? 0 : new Date(8_640_000_000_000_000);
      return { accessKeyId: `key-${asked}`, secretAccessKey: "s", sessionToken: `token-${asked}`, expiresAt };
    };
    const store = await openOn(server.url, { credentials, variables: { AWS_REGION: "us-east-1" } });
    expect(server.asked.at(-1)?.headers["x-amz-security-token"]).toBe("token-1");
    for (const _ of [1, 2]) await store.read([recordOf("any").key]);
    expect(server.asked.at(-1)?.headers["x-amz-security-token"]).toBe("token-2");
    server.answer = ({ headers }) =>
      headers["x-amz-security-token"] === "token-2" ? problem("ExpiredTokenException") : null;
    await store.read([recordOf("any").key]);
    expect(server.asked.at(-1)?.headers["x-amz-security-token"]).toBe("token-3");
    expect(server.asked.at(-1)?.headers.authorization).toContain("Credential=key-3/");
  });

  it("says that the function for credentials failed", async () => {
    const credentials = () => Promise.reject(new Error("no role\nhere"));
    const error = await rejection(openOn(server.url, { credentials }));
    expect(error).toMatchObject({ kind: "auth", outcome: "not-applied" });
    expect(error.message).toContain("there are no credentials (no role here): check the function");
  });

  it("signs by the server's clock where the machine's is wrong", async () => {
    const serverTime = new Date(Date.now() + 3_600_000);
    server.answer = ({ headers }) => {
      const date = { date: serverTime.toUTCString() };
      const isRight = String(headers["x-amz-date"]).startsWith(
        serverTime.toISOString().slice(0, 13).replaceAll("-", ""),
      );
      return isRight
        ? { body: { Table: TABLE }, headers: date }
        : { ...problem("InvalidSignatureException", "Signature expired"), headers: date };
    };
    await expect(openOn(server.url)).resolves.toBeDefined();
    expect(server.asked).toHaveLength(2);
  });

  it("says which package is missing", async () => {
    vi.doMock("aws4fetch", () => {
      throw new Error("Cannot find package 'aws4fetch'");
    });
    const error = await rejection(openOn(server.url));
    vi.doUnmock("aws4fetch");
    expect(error).toMatchObject({
      kind: "config",
      message: expect.stringContaining("npm install aws4fetch"),
    });
  });
});
