import { Compile } from "typebox/compile";
import { describe, expect, it } from "vitest";
import { type Body, type TestServer, testServer } from "./support/server.ts";

const METHODS = new Set(["get", "post"]);

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

/** Every `$ref` of the document, wherever it stands. */
function references(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  const own = "$ref" in value && typeof value.$ref === "string" ? [value.$ref] : [];
  return [...own, ...Object.values(value).flatMap(references)];
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
  it("is OpenAPI 3.1 in its structure", async () => {
    const { document, operations } = await described();
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: "Solehold", license: { identifier: "Apache-2.0" } });
    expect(document.info.version).toMatch(/^\d+\.\d+\.\d+/);
    const ids = operations.map(({ spec }) => spec.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const tags = new Set(document.tags.map(({ name }: Body) => name));
    for (const { method, path, spec } of operations) {
      expect(METHODS.has(method)).toBe(true);
      expect(path).toMatch(/^\/[a-z0-9./]*$/);
      expect(spec.summary.length).toBeGreaterThan(3);
      expect(tags.has(spec.tags[0])).toBe(true);
      expect(Object.keys(spec.responses).every((status) => /^[1-5]\d\d$/.test(status))).toBe(true);
      for (const reply of Object.values(spec.responses) as Body[])
        expect(reply.description.length).toBeGreaterThan(3);
      expect(spec.requestBody === undefined).toBe(method === "get");
      for (const parameter of spec.parameters ?? []) {
        expect(parameter).toMatchObject({
          in: "query",
          required: expect.any(Boolean),
          schema: expect.any(Object),
        });
      }
    }
  });

  it("refers to nothing that is not in it, and has nothing that nobody refers to", async () => {
    const { document } = await described();
    const named = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
    const used = new Set(references(document));
    expect([...used].filter((reference) => !named.includes(reference))).toEqual([]);
    expect(named.filter((name) => !used.has(name))).toEqual([]);
    for (const scheme of document.security.flatMap(Object.keys)) {
      expect(document.components.securitySchemes[scheme]).toBeDefined();
    }
  });

  it("describes exactly the routes that there are", async () => {
    const { server, operations } = await described();
    for (const { method, path } of operations) {
      const other = method === "get" ? await server.post(path, {}) : await server.get(path);
      expect([path, other.status, other.headers.get("allow")]).toEqual([path, 405, method.toUpperCase()]);
    }
    const mentioned = new Set(operations.map(({ path }) => path));
    for (const path of ["/v1/leases/acquire", "/v1/leases", "/v1/watch", "/v1/audit", "/metrics", "/"]) {
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
      if (path === "/v1/watch") continue;
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

function expectDescribed(status: number, body: Body, spec: Body, document: Body): void {
  const reply = spec.responses[String(status)];
  expect([spec.operationId, status, reply === undefined]).toEqual([spec.operationId, status, false]);
  const [content] = Object.values(reply.content) as Body[];
  const schema = Compile(resolved(content.schema, document));
  expect([spec.operationId, [...schema.Errors(body)]]).toEqual([spec.operationId, []]);
}
