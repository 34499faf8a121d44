/** The kit on dynalite, an emulator of DynamoDB. */
import { afterAll, beforeAll, describe, it } from "vitest";
import { describeLeases, describeStore } from "../../../src/conformance/index.ts";
import type { LeaseKey } from "../../../src/core/index.ts";
import { kitProcess } from "../../conformance/child.ts";
import { EFFORT } from "../../conformance/effort.ts";
import { faultyClient } from "../../conformance/faulty.ts";
import { type Engine, startDynalite } from "../../engines/index.ts";
import { openOn, request, urlOf, VARIABLES } from "./place.ts";

let server: Engine;

beforeAll(async () => {
  server = await startDynalite();
  await (await openOn(server.url)).close();
});

afterAll(async () => {
  await server?.stop();
});

const open = () => openOn(server.url);
const openFaulty = () => faultyClient(server.url, (url) => openOn(url, { timeoutMs: 700 }));
const corrupt = async ({ tenant, name }: LeaseKey): Promise<void> => {
  await request(server.url, "UpdateItem", {
    TableName: "leases",
    Key: { tenant: { S: tenant }, name: { S: name } },
    UpdateExpression: "set #record = :damage",
    ExpressionAttributeNames: { "#record": "record" },
    ExpressionAttributeValues: { ":damage": { S: "damage" } },
  });
};

describeStore("DynamoDB (dynalite)", { open, openSecond: open, openFaulty, corrupt }, { describe, it });
describeLeases(
  "DynamoDB (dynalite)",
  {
    open,
    openSecond: open,
    openFaulty,
    child: () => kitProcess(urlOf(server.url), VARIABLES),
    patienceMs: 100_000,
  },
  { describe, it },
);

const openPolling = () => openOn(server.url, { url: urlOf(server.url, "polled"), pollMs: 20 });

describeStore(
  "DynamoDB (dynalite) with polling watches",
  { open: openPolling, openSecond: openPolling, effort: EFFORT },
  { describe, it },
);
