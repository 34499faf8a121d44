/** What a write becomes when DynamoDB refuses, fails, says nothing or something else. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LeaseStore } from "../../../src/store/index.ts";
import { startDynalite } from "../../engines/index.ts";
import { applyOne, create, recordOf, rejection, until, writeOf } from "../records.ts";
import { openOn, request } from "./place.ts";
import { type Answer, problem, ScriptedServer } from "./scripted-server.ts";

let server: ScriptedServer;
let store: LeaseStore;

beforeEach(async () => {
  server = await ScriptedServer.start();
  store = await openOn(server.url, { timeoutMs: 500 });
});
afterEach(async () => {
  await store.close();
  await server.stop();
});

const write = () => rejection(store.apply([writeOf(recordOf("fault"))]));

describe("a write to DynamoDB", () => {
  const CASES: readonly (readonly [string, Answer, string, string])[] = [
    ["throttled", problem("ProvisionedThroughputExceededException"), "unreachable", "not-applied"],
    ["limited", problem("ThrottlingException"), "unreachable", "not-applied"],
    ["forbidden", problem("AccessDeniedException"), "auth", "not-applied"],
    ["of an unknown client", problem("UnrecognizedClientException"), "auth", "not-applied"],
    ["to a table that is gone", problem("ResourceNotFoundException"), "config", "not-applied"],
    ["that is not valid", problem("ValidationException"), "internal", "not-applied"],
    ["with an internal error", problem("InternalServerError", "oh", 500), "unreachable", "unknown"],
    ["with an error nobody knows", problem("SomethingNewException"), "unreachable", "unknown"],
    ["refused by a proxy", { status: 503, body: "<html>busy</html>" }, "unreachable", "unknown"],
    ["redirected", { status: 307, headers: { location: "/elsewhere" } }, "unreachable", "unknown"],
    ["answered with something else", { body: "<html>hello</html>" }, "unreachable", "unknown"],
    ["cut off", { cut: true }, "unreachable", "unknown"],
  ];

  it.each(CASES)("%s", async (_, answer, kind, outcome) => {
    const before = server.asked.length;
    server.answer = () => answer;
    expect(await write()).toMatchObject({ name: "StoreError", kind, outcome });
    const sent = server.asked.slice(before).filter(({ action }) => action === "PutItem");
    expect(sent).toHaveLength(1);
  });

  it("that nobody answers is of unknown outcome, and a read simply failed", async () => {
    await store.close();
    const real = await startDynalite();
    store = await openOn(real.url, { timeoutMs: 500 });
    await real.pause();
    expect(await write()).toMatchObject({ kind: "timeout", outcome: "unknown" });
    const read = await rejection(store.read([recordOf("fault").key]));
    expect(read).toMatchObject({ kind: "timeout", outcome: "not-applied" });
    await real.resume();
    await until("it works again", () => store.read([recordOf("fault").key]));
    await real.stop();
  });

  it("to a server that is gone was not applied, and works once it is back with all its data", async () => {
    await store.close();
    const real = await startDynalite();
    store = await openOn(real.url, { timeoutMs: 2_000 });
    const record = recordOf("kept");
    await create(store, record);
    await real.kill();
    // The first may still go out on a connection whose end was not noticed yet.
    await until("the refusal is certain", async () =>
      (await write()).outcome === "not-applied" ? true : null,
    );
    await real.restart();
    const { records } = await until("it works again", () => store.read([record.key]));
    expect(records[0]).toMatchObject({ kind: "found", record: { nonce: record.nonce } });
    await real.stop();
  });

  it("that lost is shown the item that comes with the refusal, without another read", async () => {
    const winner = {
      tenant: { S: "default" },
      name: { S: "fault" },
      version: { S: "v9" },
      record: { S: "damage" },
    };
    server.answer = ({ action }) =>
      action === "PutItem"
        ? { status: 400, body: { __type: "x#ConditionalCheckFailedException", Item: winner } }
        : null;
    const before = server.asked.length;
    const result = await applyOne(store, writeOf(recordOf("fault"), "v1"));
    expect(result).toMatchObject({ kind: "conflict", current: { kind: "corrupt", version: "v9" } });
    expect(server.asked.slice(before).map(({ action }) => action)).toEqual(["PutItem"]);
  });

  it("is conditional, asks for the winner, and reads are consistent", async () => {
    await store.apply([writeOf(recordOf("asked"), "v1")]);
    expect(server.asked.at(-1)?.body).toMatchObject({
      ConditionExpression: "#version = :expected",
      ExpressionAttributeValues: { ":expected": { S: "v1" } },
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    });
    await store.read([recordOf("asked").key]);
    expect(server.asked.at(-1)).toMatchObject({ action: "GetItem", body: { ConsistentRead: true } });
  });
});

it("an item without a version is damage, not absence: it is listed beside its neighbours and can be replaced", async () => {
  const real = await startDynalite();
  const other = await openOn(real.url);
  const neighbour = recordOf("neighbour");
  await create(other, neighbour);
  const odd = { tenant: { S: "default" }, name: { S: "odd" } };
  await request(real.url, "PutItem", { TableName: "leases", Item: odd });
  const page = await other.list!({ tenant: "default", prefix: "", limit: 10 });
  expect(page.records.map(({ nonce }) => nonce)).toEqual([neighbour.nonce]);
  const [{ version } = { version: "" }] = page.corrupt;
  expect((await applyOne(other, writeOf(recordOf("odd")))).kind).toBe("conflict");
  expect((await applyOne(other, writeOf(recordOf("odd"), version))).kind).toBe("applied");
  expect((await applyOne(other, writeOf(recordOf("odd"), version))).kind).toBe("conflict");
  await real.stop();
});

it("a reply without a Date header is an error, as there would be no time", async () => {
  server.answer = () => ({ headers: { date: "" } });
  const error = await rejection(store.read([recordOf("timeless").key]));
  expect(error).toMatchObject({ kind: "internal", message: expect.stringContaining("a reply has no time") });
});
