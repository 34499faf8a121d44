/**
 * From a schema to a check that names the field and the fix. HTTP bodies, query strings and stream commands
 * are all checked here, so a mistake reads the same wherever it is made.
 */
import { describeType } from "solehold/internal";
import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { Pointer } from "typebox/schema";
import { ProblemError, refusal } from "./problem.ts";

interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: object;
}

export type Check<Schema extends TSchema> = (value: unknown) => Static<Schema>;

/** Compiling costs far more than checking, and many servers may live in one process. */
const validators = new WeakMap<TSchema, ReturnType<typeof Compile>>();

function validatorOf(schema: TSchema): ReturnType<typeof Compile> {
  const known = validators.get(schema) ?? Compile(schema);
  validators.set(schema, known);
  return known;
}

/** The value as its type, or a ProblemError with status 400. `root` names the value itself: "body". */
export function checkOf<Schema extends TSchema>(schema: Schema, root: string): Check<Schema> {
  const validator = validatorOf(schema);
  const known = Object.keys((schema as { properties?: object }).properties ?? {});
  return (value) => {
    if (validator.Check(value)) return value as Static<Schema>;
    const errors: readonly SchemaError[] = validator.Errors(value);
    throw new ProblemError(refusalOf(errors, value, { root, known }));
  };
}

/** Query strings know only text: whole numbers, true and false become what the schema asks for. */
export function checkQueryOf<Schema extends TSchema>(schema: Schema): Check<Schema> {
  const check = checkOf(schema, "query");
  const properties = (schema as { properties?: Record<string, { type?: string }> }).properties ?? {};
  const named = (type: string) => Object.keys(properties).filter((name) => properties[name]?.type === type);
  const integers = named("integer");
  const booleans = named("boolean");
  return (value) => {
    const query: Record<string, unknown> = { ...(value as object) };
    for (const name of integers) {
      const text = query[name];
      if (typeof text === "string" && /^-?\d{1,15}$/.test(text)) query[name] = Number(text);
    }
    for (const name of booleans) {
      if (query[name] === "true" || query[name] === "false") query[name] = query[name] === "true";
    }
    return check(query);
  };
}

interface Naming {
  readonly root: string;
  readonly known: readonly string[];
}

function refusalOf(errors: readonly SchemaError[], value: unknown, naming: Naming) {
  // A field that is not known comes first: it usually is a known one, misspelt, which is then missing.
  const error =
    errors.find(({ keyword }) => keyword === "additionalProperties") ??
    errors.find(({ keyword }) => keyword === "anyOf") ??
    errors[0];
  if (error === undefined) return refusal(naming.root, "does not have the expected shape");
  const params = error.params as { readonly [name: string]: unknown };
  const path = Pointer.Indices(error.instancePath);
  const child = firstName(params.additionalProperties) ?? firstName(params.requiredProperties);
  const field = fieldName(child === null ? path : [...path, child], naming.root);
  return refusal(
    field,
    messageOf(
      error.keyword,
      params,
      Pointer.Get(value, error.instancePath),
      path.length === 0 ? naming.known : [],
    ),
  );
}

function messageOf(
  keyword: string,
  params: { readonly [name: string]: unknown },
  value: unknown,
  known: readonly string[],
): string {
  switch (keyword) {
    case "additionalProperties":
      return `is not a field of this request${known.length === 0 ? "" : `: the fields are ${known.join(", ")}`}`;
    case "required":
      return "is missing";
    case "type":
      return `must be ${article(params.type)}, got ${shown(value)}`;
    case "enum":
      return `must be one of ${(params.allowedValues as readonly unknown[]).join(", ")}, got ${shown(value)}`;
    case "pattern":
      return `must match ${String(params.pattern)}, got ${shown(value)}`;
    case "minimum":
      return `must be at least ${String(params.limit)}, got ${shown(value)}`;
    case "maximum":
      return `must be at most ${String(params.limit)}, got ${shown(value)}`;
    case "minItems":
      return `must have at least ${String(params.limit)} entries`;
    case "uniqueItems":
      return "must name each once";
    case "maxItems":
      return `must have at most ${String(params.limit)} entries, got ${(value as readonly unknown[]).length}: send several requests`;
    default:
      return `has the wrong shape, got ${shown(value)}`;
  }
}

const ARTICLES: Readonly<Record<string, string>> = {
  string: "a string",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  object: "an object",
  array: "an array",
  null: "null",
};

function article(type: unknown): string {
  return ARTICLES[String(type)] ?? String(type);
}

/** Numbers are shown; texts are not, because a token may stand in the wrong field. */
function shown(value: unknown): string {
  return typeof value === "number" ? String(value) : describeType(value);
}

function firstName(names: unknown): string | null {
  return Array.isArray(names) && typeof names[0] === "string" ? names[0] : null;
}

const LONGEST_FIELD = 100;

function fieldName(path: readonly string[], root: string): string {
  if (path.length === 0) return root;
  const name = path.map((part, index) =>
    /^\d+$/.test(part) ? `[${part}]` : `${index > 0 ? "." : ""}${part}`,
  );
  return name.join("").slice(0, LONGEST_FIELD);
}
