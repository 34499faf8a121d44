import { Compile } from "typebox/compile";
import { describe, expect, it } from "vitest";
import { lintOpenApi } from "./support/openapi-lint.ts";
import { type Body, type TestServer, testServer } from "./support/server.ts";

/** Each is found by the lint, and only it. */
const MISTAKES: readonly (readonly [string, (document: Body) => void, RegExp])[] = [
  ["a query without a description", ({ paths }) => delete list(paths).parameters[1].description, /\?prefix/],
  ["an operation without a tag", ({ paths }) => list(paths).tags.pop(), /tag/],
  ["a missing summary", ({ paths }) => delete list(paths).summary, /summary/],
  ["two operations of one name", ({ paths }) => (list(paths).operationId = "getLease"), /not unique/],
  ["an undescribed refusal", ({ paths }) => delete list(paths).responses["429"], /429/],
  [
    "a problem of another shape",
    ({ paths }) =>
      (list(paths).responses["403"].content["application/problem+json"].schema = { type: "object" }),
    /problem's schema/,
  ],
  [
    "an undescribed field",
    ({ components }) => delete components.schemas.Lease.properties.note.description,
    /note/,
  ],
  ["a reference that leads nowhere", ({ components }) => delete components.schemas.Granted, /leads nowhere/],
  [
    "a component that nobody uses",
    ({ components }) => (components.schemas.Extra = { type: "string", description: "Extra." }),
    /used by nobody/,
  ],
  [
    "a body that may say anything",
    ({ paths }) => delete body(paths).schema.additionalProperties,
    /takes what nobody reads/,
  ],
  ["a body without an example", ({ paths }) => (body(paths).examples = {}), /no example/],
  [
    "a pattern that is none",
    ({ components }) => (components.schemas.Lease.properties.fence.pattern = "("),
    /pattern/,
  ],
  [
    "a field of no type",
    ({ components }) => delete components.schemas.Lease.properties.ttlMs.type,
    /no type/,
  ],
];

const list = (paths: Body): Body => paths["/v1/leases"].get;
const body = (paths: Body): Body => paths["/v1/leases/acquire"].post.requestBody.content["application/json"];

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly spec: Body;
}

async function described(): Promise<{
  server: TestServer;
  document: Body;
  operations: readonly Operation[];
}> {
  const server = await testServer();
  const { body: document } = await server.get("/openapi.json");
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item as object).map(([method, spec]) => ({ method, path, spec })),
  );
  return { server, document, operations };
}

/** A schema with its references resolved, so that it can be checked alone. */
function resolved(schema: Body, document: Body): Body {
  if (Array.isArray(schema)) return schema.map((item) => resolved(item, document));
  if (typeof schema !== "object" || schema === null) return schema;
  if (typeof schema.$ref === "string") {
    const name = schema.$ref.split("/").at(-1);
    return resolved(document.components.schemas[name ?? ""], document);
  }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, resolved(value, document)]));
}

describe("the OpenAPI document", () => {
  it("leaves no caller guessing: a strict lint finds nothing", async () => {
    const { document } = await described();
    expect(lintOpenApi(document)).toEqual([]);
  });

  it.each(MISTAKES)("would not pass the lint with %s", async (_what, make, finding) => {
    const { document } = await described();
    make(document);
    expect(lintOpenApi(document)).toEqual([expect.stringMatching(finding)]);
  });

  it("describes exactly the routes that there are", async () => {
    const { server, operations } = await described();
    for (const { method, path } of operations) {
      const other = method === "get" ? await server.post(path, {}) : await server.get(path);
      expect([path, other.status, other.headers.get("allow")]).toEqual([path, 405, method.toUpperCase()]);
    }
    const mentioned = new Set(operations.map(({ path }) => path));
    for (const path of ["/v1/leases/acquire", "/v1/leases", "/v1/watch", "/v1/audit", "/metrics"]) {
      expect(mentioned.has(path)).toBe(true);
    }
  });

  it("has examples that fit their schemas and work as they say, with answers that fit too", async () => {
    const { server, document, operations } = await described();
    let carriedOut = 0;
    for (const { method, path, spec } of operations) {
      if (method === "post") {
        const { schema, examples } = spec.requestBody.content["application/json"];
        const body = Compile(resolved(schema, document));
        for (const { summary, value } of Object.values(examples) as Body[]) {
          expect([path, [...body.Errors(value)]]).toEqual([path, []]);
          const answer = await server.post(path, value);
          expect([summary, answer.status, answer.text]).toEqual([
            summary,
            Number(/\((\d+)\)$/.exec(summary)?.[1]),
            answer.text,
          ]);
          expectDescribed(answer.status, answer.body, spec, document);
          carriedOut += 1;
        }
        continue;
      }
      if (spec.responses["200"].content["text/event-stream"] !== undefined) {
        await expectStream(`${server.url}${path}`);
        carriedOut += 1;
        continue;
      }
      const query = new URLSearchParams();
      for (const { name, example } of spec.parameters ?? [])
        if (example !== undefined) query.set(name, String(example));
      const answer = await server.get(`${path}?${query}`);
      expect([path, answer.status]).toEqual([path, 200]);
      if (answer.body !== null) expectDescribed(answer.status, answer.body, spec, document);
      carriedOut += 1;
    }
    expect(carriedOut).toBeGreaterThan(20);
  });

  it("describes the problems too", async () => {
    const { server, document, operations } = await described();
    const acquire = operations.find(({ path }) => path === "/v1/leases/acquire")?.spec;
    await server.lease("acquire", { name: "x", holder: "a" });
    for (const body of [{ name: "x", holder: "b" }, { name: 5 }, { name: "x", holder: "b", ttlMs: 0 }]) {
      const answer = await server.lease("acquire", body);
      expectDescribed(answer.status, answer.body, acquire, document);
    }
  });
});

/** It never ends by itself: its beginning has to do. */
async function expectStream(url: string): Promise<void> {
  const controller = new AbortController();
  const response = await fetch(url, { signal: controller.signal });
  const { value } = (await response.body?.getReader().read()) ?? {};
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  expect(new TextDecoder().decode(value)).toMatch(/^(id: \S+\n)?event: watching\n/);
  controller.abort();
}

function expectDescribed(status: number, body: Body, spec: Body, document: Body): void {
  const reply = spec.responses[String(status)];
  expect([spec.operationId, status, reply === undefined]).toEqual([spec.operationId, status, false]);
  const [content] = Object.values(reply.content) as Body[];
  const schema = Compile(resolved(content.schema, document));
  expect([spec.operationId, [...schema.Errors(body)]]).toEqual([spec.operationId, []]);
}
