// node scripts/reference.mjs [--check]: writes the reference pages of docs/reference from what the packages themselves
// use: the commands of the command line, the server's OpenAPI document and its settings, the tables of reasons, the
// declarations of what they export. With --check it writes nothing, and fails if a page is not what it would write.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog, flagName, resolveConfig, SETTINGS, startServer, variableName } from "@solehold/server";
import { PROBLEM_REASONS, REASONS } from "solehold/internal";
import { usageOf } from "../packages/cli/dist/command.js";
import { COMMANDS } from "../packages/cli/dist/registry.js";
import { apiReport } from "./api-report.mjs";
import { libraryErrors, REQUEST_MEANINGS } from "./reference-errors.mjs";

const FOLDER = join(import.meta.dirname, "../docs/reference");
const MADE_BY = "<!-- Made by `npm run reference` from the source. Change that, not this. -->";

/** In a cell of a table. @param {unknown} text */
const cell = (text) => String(text).replaceAll("|", "\\|").replaceAll(/\s+/g, " ").trim();

/** @param {readonly string[]} head @param {readonly (readonly unknown[])[]} rows */
const table = (head, rows) =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.map(cell).join(" | ")} |`).join("\n");

function commandLine() {
  const index = table(
    ["command", "what it does"],
    COMMANDS.map(({ name, summary }) => [`[\`${name}\`](#solehold-${name})`, summary]),
  );
  const sections = COMMANDS.map((command) => {
    const { name, summary, options, notes = [], examples } = command;
    const rows = Object.entries(options).map(([option, { placeholder, help }]) => [
      `\`--${option}${placeholder === "" ? "" : ` ${placeholder}`}\``,
      help,
    ]);
    const lines = Object.entries(examples).map(([line, what]) => `# ${what}\n${line}`);
    return [
      `## solehold ${name}`,
      `${summary}.`,
      `\`${usageOf(command)}\``,
      ...notes,
      ...(rows.length === 0 ? [] : [table(["option", "meaning"], rows)]),
      `\`\`\`sh\n${lines.join("\n")}\n\`\`\``,
    ].join("\n\n");
  });
  return [
    "# Command line",
    MADE_BY,
    "`solehold COMMAND --help` prints the same. Exit codes: [the package's page](../../packages/cli/README.md#exit-codes).",
    index,
    ...sections,
  ].join("\n\n");
}

/** Text of a schema for people: its type, or the name of the schema that it refers to. @param {any} schema */
function typeOf(schema = {}) {
  if (schema.$ref !== undefined) return schema.$ref.replace("#/components/schemas/", "");
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const either = schema.anyOf ?? schema.oneOf;
  if (either !== undefined) return either.map(typeOf).join(" or ");
  if (schema.type === "array") return `array of ${typeOf(schema.items)}`;
  return [schema.type].flat().join(" or ");
}

/** @param {any} schema The fields of a body, or of a component. */
function fieldsOf(schema) {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, field]) => [
    `\`${name}\``,
    typeOf(field),
    required.has(name) ? "yes" : "",
    /** @type {any} */ (field).description ?? "",
  ]);
}

/** @param {string} method @param {string} path @param {any} operation @param {any} schemas */
function operationSection(method, path, operation, schemas) {
  const { summary, description, parameters = [], requestBody, responses } = operation;
  const body = requestBody?.content?.["application/json"]?.schema;
  const bodySchema = body?.$ref === undefined ? body : schemas[body.$ref.split("/").at(-1)];
  const queries = parameters.map(({ name, required, schema, description: text }) => [
    `\`${name}\``,
    typeOf(schema),
    required === true ? "yes" : "",
    text ?? "",
  ]);
  const answers = Object.entries(responses).map(([status, { description: text, content = {} }]) => [
    status,
    Object.values(content)
      .map(({ schema }) => typeOf(schema))
      .join(", "),
    text,
  ]);
  return [
    `### ${method.toUpperCase()} ${path}`,
    `${summary}.${description === undefined ? "" : ` ${description}`}`,
    ...(queries.length === 0 ? [] : [table(["query or header", "type", "needed", "meaning"], queries)]),
    ...(bodySchema?.properties === undefined
      ? []
      : [table(["field of the body", "type", "needed", "meaning"], fieldsOf(bodySchema))]),
    table(["status", "body", "meaning"], answers),
  ].join("\n\n");
}

async function openApi() {
  const dataDir = mkdtempSync(join(tmpdir(), "solehold-reference-"));
  const flags = { port: "0", store: "memory:", dataDir };
  const server = await startServer(resolveConfig({ flags, env: {} }), { log: createLog("silent") });
  try {
    return await (await fetch(`${server.url}/openapi.json`)).json();
  } finally {
    await server.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function httpApi() {
  const { paths, components, tags } = await openApi();
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const sections = tags.map(({ name: tag, description }) =>
    [
      `## ${tag[0].toUpperCase()}${tag.slice(1)}`,
      description,
      ...operations
        .filter(({ operation }) => operation.tags?.[0] === tag)
        .map(({ method, path, operation }) => operationSection(method, path, operation, components.schemas)),
    ].join("\n\n"),
  );
  const schemas = Object.entries(components.schemas)
    .filter(([, schema]) => schema.properties !== undefined)
    .map(([name, schema]) =>
      [
        `### ${name}`,
        schema.description ?? "",
        table(["field", "type", "always", "meaning"], fieldsOf(schema)),
      ]
        .filter((part) => part !== "")
        .join("\n\n"),
    );
  return [
    "# HTTP API",
    MADE_BY,
    "The server's own description is at `/openapi.json` (OpenAPI 3.1). Every answer that is not a success is a " +
      "[problem](errors.md). Many commands on one connection: [the stream](../stream.md).",
    ...sections,
    "## Bodies",
    ...schemas,
  ].join("\n\n");
}

function settings() {
  const rows = Object.entries(SETTINGS).map(([name, { help, kind, choices, fallback, shown = fallback }]) => [
    `\`--${flagName(name)}\``,
    `\`${variableName(name)}\``,
    `\`${name}\``,
    choices?.join(", ") ?? kind,
    shown,
    help,
  ]);
  return [
    "# Settings of the server",
    MADE_BY,
    "A setting is taken from its flag, else from its variable, else from the JSON file that `--config` names.",
    table(["flag", "variable", "in the file", "kind", "default", "meaning"], rows),
  ].join("\n\n");
}

const hex = (/** @type {number} */ code) => `0x${code.toString(16).toUpperCase()}`;

const WAITING = {
  yes: "Waiting helps.",
  dated: "Waiting helps where the answer says until when.",
  no: "Waiting does not help.",
};

function errors() {
  const reasons = Object.entries(REASONS).map(([name, { code, status, serviceCode, waitable, sentence }]) =>
    [
      `### ${name}`,
      `${sentence[0].toUpperCase()}${sentence.slice(1)}.`,
      `Code \`${hex(code)}\`, HTTP ${status}, \`${serviceCode}\`.${status === 200 ? "" : ` ${WAITING[waitable]}`}`,
    ].join("\n\n"),
  );
  const requests = Object.entries(PROBLEM_REASONS)
    .filter(([name]) => !(name in REASONS))
    .map(([name, { code, status, serviceCode }]) => [
      `<a id="${name.toLowerCase().replaceAll("_", "-")}"></a>\`${name}\``,
      `\`${hex(code)}\``,
      status,
      `\`${serviceCode}\``,
      REQUEST_MEANINGS[name],
    ]);
  return [
    "# Reasons and errors",
    MADE_BY,
    "Every decision has one reason. It is in the answer over HTTP (`reason`, `reasonCode`), in the audit trail, and on the " +
      "errors of the library (`error.reason`), which also have a `code` of their own, `retryable`, and `outcome`: whether " +
      "a write may have happened.",
    "## Errors of the library",
    ...libraryErrors().map(({ code, error, meaning }) => `### ${code}\n\n\`${error}\`. ${meaning}`),
    "## Reasons of decisions",
    ...reasons,
    "## What ends a request before it is a command",
    table(["reason", "code", "HTTP", "service code", "meaning"], requests),
  ].join("\n\n");
}

function api() {
  return [
    "# Exported names",
    MADE_BY,
    "Every name that the packages export, with its declaration: what a semantic version speaks of. `solehold/internal` is " +
      "left out: it is for the packages of this repository and may change at any time.",
    ...apiReport(),
  ].join("\n\n");
}

const PAGES = {
  "api.md": api,
  "cli.md": commandLine,
  "http.md": httpApi,
  "server-settings.md": settings,
  "errors.md": errors,
};
const isCheck = process.argv.includes("--check");
let stale = 0;
for (const [name, make] of Object.entries(PAGES)) {
  const path = join(FOLDER, name);
  const text = `${await make()}\n`;
  if (!isCheck) writeFileSync(path, text);
  else if (readFileSync(path, "utf8") !== text) {
    console.error(`docs/reference/${name} is not what the source says: npm run reference`);
    stale += 1;
  }
}
process.exitCode = stale === 0 ? 0 : 1;
