/** Checks that every engine makes of what its caller passes, and the words in which it refuses. */
import { describeType } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";

/** What every engine on a network can be given. */
export interface CallOptions {
  /** A call that got no answer by then ends, with its outcome unknown. Default 5000. */
  readonly timeoutMs?: number;
  /** Clocks, timers and randomness. */
  readonly env?: Env;
}

export function configError(message: string, cause?: unknown): StoreError {
  return new StoreError("config", message, { outcome: "not-applied", cause });
}

/** `rule` goes on after the option's name: "must be ...". */
export function optionError(
  engine: string,
  option: string,
  rule: string,
  value: unknown,
  cause?: unknown,
): StoreError {
  return configError(`${engine}: ${option} ${rule}, got '${String(value)}'`, cause);
}

/**
 * Throws unless it is an object with these names only, and `env`: callers without a type checker pass nothing at all, the
 * URL by itself, or a name that does not exist. What was given is not repeated: a URL may carry a password.
 */
export function assertOptions(opener: string, options: unknown, example: string, names: string): void {
  if (typeof options !== "object" || options === null)
    throw configError(
      `${opener}: the options must be an object, as in ${example}, got ${describeType(options)}`,
    );
  const known = [...names.split(" "), "env"];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw configError(`${opener} has no option '${unknown}': it knows ${known.join(", ")}`);
}

export function assertOneOf(
  engine: string,
  option: string,
  value: unknown,
  allowed: readonly string[],
): void {
  if (allowed.includes(value as string)) return;
  const choices = allowed.map((each) => `"${each}"`).join(" or ");
  throw optionError(engine, option, `must be ${choices}`, value);
}

/** A URL as a message may show it: without what stands before an "@". */
export function withoutPassword(url: unknown): string {
  return String(url).replace(/^([^/@]*:\/\/)?.*@/, "$1***@");
}

/** Throws at a parameter that is not among `known`. */
export function urlParameters(
  engine: string,
  { searchParams }: URL,
  known: readonly string[],
): Readonly<Record<string, string | undefined>> {
  const unknown = [...searchParams.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return Object.fromEntries(searchParams);
  throw configError(
    `${engine}: the URL has the unknown option '${unknown}': it may have ${known.join(" and ")}`,
  );
}

/** A part of a URL. What stands for a user or a password is not shown. */
export function decodedPart(engine: string, name: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw optionError(engine, "url", `must have its ${name} percent-encoded (%25 for a %)`, "***");
  }
}

/** Of AWS, or whatever a server that speaks its protocol calls one. */
export function assertRegion(engine: string, region: string): string {
  if (/^[a-z0-9-]{1,40}$/.test(region)) return region;
  throw optionError(engine, "region", "must be named, as in ?region=eu-west-1 or in AWS_REGION", region);
}

export function assertEndpoint(engine: string, endpoint: string): string {
  if (/^https?:\/\/[^\s?#@]+$/.test(endpoint) && URL.canParse(endpoint)) return endpoint;
  throw optionError(engine, "endpoint", "must look like https://host:port", withoutPassword(endpoint));
}

/** The client library of an engine, which its user installs. `packages` is what `npm install` takes. */
export async function loadPackage<Package>(
  engine: string,
  packages: string,
  load: () => Promise<Package>,
): Promise<Package> {
  try {
    return await load();
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const isMissing = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
    const problem = isMissing ? "is missing" : `cannot be loaded (${message.replaceAll(/\s+/g, " ")})`;
    throw configError(
      `${engine}: the package ${packages} ${problem}: run \`npm install ${packages}\``,
      cause,
    );
  }
}
