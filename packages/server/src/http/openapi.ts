/** The OpenAPI 3.1 document, made from the routes themselves: what is not in a schema is not in it. */
import type { TSchema } from "typebox";
import { GrantedReplySchema, LeaseSchema } from "../protocol/schemas/leases.ts";
import { ProblemSchema } from "../protocol/schemas/problem.ts";
import type { RouteExample, RouteReply, RouteSpec } from "./route.ts";

type Spec = Omit<RouteSpec, "handle">;
type Json = Readonly<Record<string, unknown>>;

const COMPONENTS: ReadonlyMap<TSchema, string> = new Map<TSchema, string>([
  [LeaseSchema, "Lease"],
  [GrantedReplySchema, "Granted"],
  [ProblemSchema, "Problem"],
]);

const PROBLEMS: Readonly<Record<string, string>> = {
  400: "Refused: `field` has to be corrected.",
  401: "A valid API key is missing.",
  403: "The API key does not allow this.",
  404: "There is no such lease.",
  409: "Denied: `reason` says why; who holds it and until when, if somebody does.",
  412: "Fenced: a newer grant exists.",
  413: "The body is too large.",
  415: "The body is not JSON.",
  429: "Too many; Retry-After says when to come back.",
  501: "The store behind this server cannot do this.",
  503: "The store or this server is not available; `outcome` says whether the command may have been carried out.",
};

/** Not every store can list or delete. */
const NOT_ON_EVERY_STORE: ReadonlySet<string> = new Set([
  "/v1/leases",
  "/v1/replicas",
  "/v1/maintenance/collect",
]);

const TAGS = [
  { name: "leases", description: "Take, keep, look at and end leases." },
  { name: "coordinator", description: "Where to go, and who must agree." },
  { name: "audit", description: "Every attempt, hash-chained." },
  { name: "operations", description: "Health, metrics and maintenance." },
];

export function openApiDocument(specs: readonly Spec[], version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const spec of specs) {
    paths[spec.path] = { ...paths[spec.path], [spec.method.toLowerCase()]: operationOf(spec) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Solehold",
      version,
      description:
        "Exclusive, expiring, fenced leases. A stream for many commands on one connection is at /v1/stream (WebSocket).",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ apiKey: [] }],
    tags: TAGS,
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: "http",
          scheme: "bearer",
          description: "Made by `solehold keys add`. Not needed while the server has no keys.",
        },
      },
      schemas: Object.fromEntries([...COMPONENTS].map(([schema, name]) => [name, plain(schema, schema)])),
    },
  };
}

const IDEMPOTENCY_HEADER: Json = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description: "The same as `idempotencyKey` in the body.",
  schema: { type: "string" },
};

function operationOf(spec: Spec): Json {
  const { operationId, tag, summary, description, query, body, access, examples } = spec;
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(access === "open" ? { security: [] } : {}),
    ...(query === undefined ? {} : { parameters: parametersOf(query, examples) }),
    ...(spec.path.startsWith("/v1/leases/") ? { parameters: [IDEMPOTENCY_HEADER] } : {}),
    ...(body === undefined ? {} : { requestBody: { required: true, content: bodyContent(body, examples) } }),
    responses: { ...repliesOf(spec.replies), ...problemsOf(spec) },
  };
}

function bodyContent(schema: TSchema, examples: readonly RouteExample[]): Json {
  const named = examples.map(({ summary, body, status }, index) => [
    `example${index + 1}`,
    { summary: `${summary} (${status})`, value: body },
  ]);
  return { "application/json": { schema: plain(schema), examples: Object.fromEntries(named) } };
}

function parametersOf(schema: TSchema, examples: readonly RouteExample[]): readonly Json[] {
  const { properties = {}, required = [] } = schema as {
    properties?: Record<string, TSchema & { description?: string }>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...type } = plain(property) as { description?: string };
    const example = examples.find(({ query }) => query?.[name] !== undefined)?.query?.[name];
    return {
      name,
      in: "query",
      required: required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: type,
      ...(example === undefined
        ? {}
        : { example: "type" in type && type.type === "integer" ? Number(example) : example }),
    };
  });
}

function repliesOf(replies: Readonly<Record<number, RouteReply>>): Json {
  const entries = Object.entries(replies).map(([status, { description, schema, contentType }]) => [
    status,
    {
      description,
      ...(schema === undefined
        ? {}
        : { content: { [contentType ?? "application/json"]: { schema: plain(schema) } } }),
    },
  ]);
  return Object.fromEntries(entries);
}

function problemsOf({ access, path, method }: Spec): Json {
  const command = path.startsWith("/v1/leases/");
  // Without a key only too many requests on one connection are refused.
  const always = access === "open" ? ["429"] : ["400", "401", "403", "429", "503"];
  const bodied = method === "POST" ? ["413", "415"] : [];
  const statuses = [
    ...always,
    ...bodied,
    ...(command ? ["409", "412"] : []),
    ...(path === "/v1/lease" ? ["404", "409"] : []),
    ...(NOT_ON_EVERY_STORE.has(path) ? ["501"] : []),
  ];
  const content = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
  return Object.fromEntries(
    statuses.map((status) => [status, { description: PROBLEMS[status] ?? "", content }] as const),
  );
}

/** A schema as plain JSON, with shared ones referred to. `self` is written out. */
function plain(schema: unknown, self?: TSchema): unknown {
  if (typeof schema !== "object" || schema === null) return schema;
  const name = COMPONENTS.get(schema as TSchema);
  if (name !== undefined && schema !== self) return { $ref: `#/components/schemas/${name}` };
  if (Array.isArray(schema)) return schema.map((item) => plain(item));
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, plain(value)]));
}
