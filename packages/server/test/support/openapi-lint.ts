/**
 * What a careful reader would object to in an OpenAPI 3.1 document: everything that leaves a caller guessing.
 * Each finding names where and what. It knows nothing about this API but its conventions (problem documents,
 * query parameters only, one bearer scheme).
 */
import type { Body } from "./server.ts";

type Report = (where: string, what: string) => void;

const ALWAYS = ["400", "401", "403", "429", "503"];
const WITH_BODY = ["413", "415"];

export function lintOpenApi(document: Body): readonly string[] {
  const findings: string[] = [];
  const report: Report = (where, what) => void findings.push(`${where}: ${what}`);
  lintHead(document, report);
  const ids = new Set<string>();
  for (const [path, item] of Object.entries<Body>(document.paths)) {
    if (!/^(\/|(\/[a-z0-9.]+)+)$/.test(path)) report(path, "is not a plain path without a slash at its end");
    for (const [method, operation] of Object.entries<Body>(item)) {
      const where = `${method.toUpperCase()} ${path}`;
      if (ids.has(operation.operationId)) report(where, `operationId ${operation.operationId} is not unique`);
      ids.add(operation.operationId);
      lintOperation(where, method, operation, document, report);
    }
  }
  for (const [name, schema] of Object.entries<Body>(document.components.schemas)) {
    if (!isSentence(schema.description)) report(name, "has no description");
    lintSchema(name, schema, document, report);
  }
  lintReferences(document, report);
  return findings;
}

function lintHead(document: Body, report: Report): void {
  if (!/^3\.1\.\d+$/.test(document.openapi)) report("openapi", "is not 3.1");
  for (const field of ["title", "version", "description"]) {
    if (!isText(document.info?.[field])) report(`info.${field}`, "is missing");
  }
  if (!isText(document.info?.license?.identifier)) report("info.license.identifier", "is missing");
  for (const { name, description } of document.tags ?? []) {
    if (!isSentence(description)) report(`tag ${name}`, "has no description");
  }
  for (const scheme of document.security.flatMap(Object.keys)) {
    if (document.components.securitySchemes?.[scheme] === undefined)
      report(scheme, "is not a security scheme");
  }
}

function lintOperation(where: string, method: string, operation: Body, document: Body, report: Report): void {
  const { operationId, summary, tags, parameters = [], requestBody, responses } = operation;
  if (!/^[a-z][A-Za-z]+$/.test(operationId ?? "")) report(where, "operationId is not one camelCase word");
  if (!isText(summary) || /\.$/.test(summary)) report(where, "summary is missing, or ends with a full stop");
  const known = new Set(document.tags.map(({ name }: Body) => name));
  if (tags?.length !== 1 || !known.has(tags[0])) report(where, "has not exactly one tag that is described");
  if (operation.description !== undefined && !isSentence(operation.description)) {
    report(where, "description is not a sentence");
  }
  const names = new Set<string>();
  for (const parameter of parameters) {
    lintParameter(`${where} ?${parameter.name}`, parameter, document, report);
    if (names.has(parameter.name)) report(where, `has the parameter ${parameter.name} twice`);
    names.add(parameter.name);
  }
  if ((requestBody !== undefined) !== (method === "post"))
    report(where, "a body belongs to POST, and only there");
  if (requestBody !== undefined) lintRequestBody(where, requestBody, document, report);
  lintResponses(where, operation, responses ?? {}, document, report);
}

function lintParameter(where: string, parameter: Body, document: Body, report: Report): void {
  const isKnownHeader = parameter.in === "header" && parameter.name === "Idempotency-Key";
  if (parameter.in !== "query" && !isKnownHeader) report(where, "is not in the query");
  if (typeof parameter.required !== "boolean") report(where, "does not say whether it is required");
  if (!isSentence(parameter.description)) report(where, "has no description");
  if (parameter.schema === undefined) report(where, "has no schema");
  else lintSchema(where, parameter.schema, document, report);
}

function lintRequestBody(where: string, { required, content }: Body, document: Body, report: Report): void {
  if (required !== true) report(where, "the body is not required");
  const { schema, examples } = content?.["application/json"] ?? {};
  if (schema === undefined) report(where, "the body has no JSON schema");
  else lintSchema(`${where} body`, schema, document, report, "closed");
  for (const [name, { summary, value }] of Object.entries<Body>(examples ?? {})) {
    if (!/ \(\d{3}\)$/.test(summary ?? "")) report(`${where} ${name}`, "does not say how it is answered");
    if (value === undefined) report(`${where} ${name}`, "has no value");
  }
  if (Object.keys(examples ?? {}).length === 0) report(where, "the body has no example");
}

function lintResponses(
  where: string,
  { security, requestBody }: Body,
  responses: Body,
  document: Body,
  report: Report,
): void {
  const statuses = Object.keys(responses);
  if (!statuses.some((status) => status.startsWith("2"))) report(where, "has no success");
  const isOpen = Array.isArray(security) && security.length === 0;
  const wanted = isOpen ? [] : [...ALWAYS, ...(requestBody === undefined ? [] : WITH_BODY)];
  for (const status of wanted) if (!statuses.includes(status)) report(where, `does not describe ${status}`);
  for (const [status, { description, content }] of Object.entries<Body>(responses)) {
    const at = `${where} ${status}`;
    if (!/^[1-5]\d\d$/.test(status)) report(at, "is not a status");
    if (!isSentence(description)) report(at, "has no description");
    const types = Object.keys(content ?? {});
    if (types.length !== 1) report(at, "has not exactly one content type");
    const [type = ""] = types;
    const schema = content?.[type]?.schema;
    if (schema === undefined) report(at, "has no schema");
    else lintSchema(at, schema, document, report);
    if (Number(status) < 400) continue;
    if (type !== "application/problem+json") report(at, "is not a problem document");
    if (schema?.$ref !== "#/components/schemas/Problem") report(at, "does not refer to the problem's schema");
  }
}

/** "closed": a request must not be allowed to say what nobody reads. */
function lintSchema(
  where: string,
  schema: Body,
  document: Body,
  report: Report,
  mode: "open" | "closed" = "open",
): void {
  if (schema.$ref !== undefined) return;
  if ("nullable" in schema) report(where, "uses nullable, which 3.1 does not have");
  if (!isTyped(schema)) report(where, "has no type");
  if (schema.pattern !== undefined && !isPattern(schema.pattern)) report(where, "has a pattern that is none");
  if (schema.minimum !== undefined && schema.maximum !== undefined && schema.minimum > schema.maximum) {
    report(where, "has a minimum above its maximum");
  }
  if (Array.isArray(schema.enum) && new Set(schema.enum).size !== schema.enum.length) {
    report(where, "lists a value twice");
  }
  for (const part of [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]) {
    lintSchema(where, part, document, report, mode);
  }
  if (schema.items !== undefined) lintSchema(`${where}[]`, schema.items, document, report, mode);
  else if (schema.type === "array") report(where, "does not say what it is an array of");
  if (schema.properties === undefined) return;
  if (mode === "closed" && schema.additionalProperties !== false) report(where, "takes what nobody reads");
  for (const name of schema.required ?? []) {
    if (schema.properties[name] === undefined) report(where, `requires ${name}, which it does not have`);
  }
  for (const [name, property] of Object.entries<Body>(schema.properties)) {
    if (!isDescribed(property, document)) report(`${where}.${name}`, "has no description");
    lintSchema(`${where}.${name}`, property, document, report, mode);
  }
}

/** By itself, or by what it refers to; a constant says what it is. */
function isDescribed(schema: Body, document: Body): boolean {
  if (schema.$ref !== undefined) return isSentence(resolve(schema.$ref, document)?.description);
  return isSentence(schema.description) || schema.const !== undefined;
}

function isTyped(schema: Body): boolean {
  return ["type", "anyOf", "oneOf", "allOf", "enum", "const"].some(
    (keyword) => schema[keyword] !== undefined,
  );
}

function lintReferences(document: Body, report: Report): void {
  const used = new Set(references(document));
  for (const reference of used) {
    if (resolve(reference, document) === undefined) report(reference, "leads nowhere");
  }
  for (const name of Object.keys(document.components.schemas)) {
    if (!used.has(`#/components/schemas/${name}`)) report(name, "is used by nobody");
  }
}

/** Every `$ref` of the document, wherever it stands. */
function references(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  const own = "$ref" in value && typeof value.$ref === "string" ? [value.$ref] : [];
  return [...own, ...Object.values(value).flatMap(references)];
}

function resolve(reference: string, document: Body): Body {
  let found: Body = document;
  for (const part of reference.replace(/^#\//, "").split("/")) found = found?.[part];
  return found;
}

function isPattern(pattern: string): boolean {
  try {
    return new RegExp(pattern).source.length > 0;
  } catch {
    return false;
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim().length > 2;
}

/** Begins like a sentence and ends like one. */
function isSentence(value: unknown): boolean {
  return isText(value) && /^[A-Z0-9`]/.test(value) && /[.)…]$/.test(value);
}
