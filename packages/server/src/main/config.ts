/**
 * The server's settings. One precedence for all: flag > environment > file > default.
 *
 * A setting is one row of the table below: `--wait-limit-ms` is the flag, SOLEHOLD_WAIT_LIMIT_MS the
 * variable and waitLimitMs the key in the JSON file. Whatever is wrong is refused at start, naming the
 * setting, where it came from, and the fix. Nothing unknown in the file or among the SOLEHOLD_ variables is ignored.
 */
import { readFile } from "node:fs/promises";
import { isWildcard } from "../access/loopback.ts";

interface Setting<Value> {
  readonly kind: "text" | "count" | "duration" | "choice" | "flag";
  readonly fallback: Value;
  readonly choices?: readonly string[];
  /** The fallback as a person writes it, where that is not the value itself. */
  readonly shown?: string;
  readonly help: string;
  /** Reads what the flag, variable or file gave; throws a sentence that continues "NAME must be ...". */
  read(given: unknown): Value;
}

const text = (fallback: string, help: string): Setting<string> => ({
  kind: "text",
  fallback,
  help,
  read: (given) => {
    if (typeof given === "string" && given !== "") return given;
    throw new RangeError("a text that is not empty");
  },
});

const address = (help: string): Setting<string> => ({
  ...text("", help),
  read: (given) => {
    const url = typeof given === "string" && URL.canParse(given) ? new URL(given) : null;
    const isUsable = url !== null && /^https?:$/.test(url.protocol) && !isWildcard(url.hostname);
    if (isUsable) return given as string;
    throw new RangeError("an http:// or https:// URL that clients can reach");
  },
});

const count = (fallback: number, least: number, most: number, help: string): Setting<number> => ({
  kind: "count",
  fallback,
  help,
  read: (given) => {
    const value = typeof given === "string" && /^\d{1,15}$/.test(given) ? Number(given) : given;
    if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) {
      return value as number;
    }
    throw new RangeError(`a whole number from ${least} to ${most}`);
  },
});

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds. Read here and not by core's `parseDuration`: help needs this table, and must not load the library. */
function readDuration(given: unknown): number {
  const [, amount, unit = "ms"] = /^(\d{1,15})(ms|s|m|h|d)?$/.exec(String(given)) ?? [];
  return amount === undefined ? Number.NaN : Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

const duration = (shown: string, mostMs: number, help: string): Setting<number> => ({
  kind: "duration",
  fallback: readDuration(shown),
  shown,
  help,
  read: (given) => {
    const ms = readDuration(given);
    if (ms <= mostMs) return ms;
    throw new RangeError(`a duration such as 30m or 1h, at most ${mostMs / UNIT_MS.d}d`);
  },
});

const choice = <Value extends string>(
  fallback: Value,
  choices: readonly Value[],
  help: string,
): Setting<Value> => ({
  kind: "choice",
  fallback,
  choices,
  help,
  read: (given) => {
    const found = choices.find((each) => each === given);
    if (found !== undefined) return found;
    throw new RangeError(`one of ${choices.join(", ")}`);
  },
});

const flag = (help: string): Setting<"yes" | "no"> => ({
  kind: "flag",
  fallback: "no",
  help,
  read: (given) => {
    if (given === true || given === "yes" || given === "true" || given === "1" || given === "") return "yes";
    if (given === false || given === "no" || given === "false" || given === "0") return "no";
    throw new RangeError("yes or no");
  },
});

const YEAR_MS = 365 * UNIT_MS.d;

export const SETTINGS = {
  host: text("127.0.0.1", "the address to listen on; anything but loopback needs API keys and TLS"),
  port: count(7077, 0, 65_535, "the port to listen on; 0 takes a free one"),
  dataDir: text("./.solehold", "the folder for the embedded store, the audit trail and the API keys"),
  keys: choice(
    "data-dir",
    ["data-dir", "store"],
    "where API keys are: in the data folder of this machine, or in the store, for all replicas; then they are always needed",
  ),
  store: text("", "the store's URL (default embedded:DATA-DIR/data)"),
  audit: choice(
    "before-reply",
    ["before-reply", "background", "memory"],
    "when an entry of the audit trail is on the disk",
  ),
  auditShip: text(
    "",
    "where a copy of every entry is sent: stdout:, file:PATH, syslog://host:port, or a URL that takes JSON lines by POST",
  ),
  tlsCert: text("", "a PEM file with the server's certificate; needs --tls-key"),
  tlsKey: text("", "a PEM file with its private key"),
  tlsClientCa: text(
    "",
    "a PEM file: only clients with a certificate of this authority are spoken to; --identities says what they may do",
  ),
  identities: text(
    "",
    "a JSON file with the OpenID Connect issuer, and which tokens and client certificates may do what",
  ),
  behindProxy: flag("TLS ends in a proxy in front of this server"),
  quorumFile: text("", "a JSON file with the signers and thresholds for /v1/quorum/verify"),
  policyFile: text("", "a JSON file with the rules for keys that need approvals, and the signers"),
  nodeId: text("", "this replica's name among others on the same store (default: host:port of its URL)"),
  advertiseUrl: address(
    "the URL under which clients reach this replica (default: where it listens; nothing with a wildcard host or a proxy)",
  ),
  weight: count(1, 1, 1_000_000, "this replica's share of the keys, against the others' weights"),
  defaultTtlMs: count(30_000, 1, YEAR_MS, "the ttl of requests that name none"),
  minTtlMs: count(1, 1, YEAR_MS, "shorter ones are refused"),
  maxTtlMs: count(3_600_000, 1, YEAR_MS, "longer ones are refused"),
  terms: choice(
    "refuse",
    ["refuse", "accept"],
    "whether requests may name a term; a key once held under a high term is closed to lower ones for good",
  ),
  bodyLimitBytes: count(
    4_194_304,
    1_024,
    2 ** 30,
    "the largest batch of renewals or stream message; any other request has at most 262144",
  ),
  batchLimit: count(10_000, 1, 1_000_000, "the most commands in one request or stream message"),
  leasesPerTenant: count(1_000_000, 1, 1e9, "live leases; more are denied"),
  requestsPerSecond: count(50_000, 1, 1e9, "commands per API key; more are answered 429"),
  connectionLimit: count(10_000, 1, 1e6, "open connections; more are closed at once"),
  waiterLimit: count(10_000, 0, 1e7, "requests that may wait in queues"),
  watchLimit: count(10_000, 0, 1e7, "open watches"),
  sharePercent: count(
    50,
    1,
    100,
    "how much of the limits on connections, waiters and watches one API key, or one tenant, may take",
  ),
  waitLimitMs: count(300_000, 0, 24 * 3_600_000, "the longest a request may wait in a queue"),
  watchBacklog: count(10_000, 1, 1e7, "changes kept for watchers that reconnect"),
  collectEvery: duration("1h", YEAR_MS, "how often records that ended a day ago are deleted; 0 for never"),
  drainDelayMs: count(
    0,
    0,
    3_600_000,
    "how long /readyz says 503 at shutdown before anything is refused: longer than a load balancer needs to see it",
  ),
  drainMs: count(10_000, 0, 3_600_000, "how long requests may take to finish at shutdown"),
  logLevel: choice(
    "info",
    ["silent", "error", "warn", "info", "debug"],
    "what is logged; every request from debug on",
  ),
} as const;

export type SettingName = keyof typeof SETTINGS;

type Values = {
  readonly [name in SettingName]: (typeof SETTINGS)[name] extends Setting<infer Value> ? Value : never;
};

export interface ServerConfig extends Values {}

export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[];

export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

export interface ConfigSources {
  /** By setting name. */
  readonly flags?: Readonly<Record<string, string | boolean | undefined>>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The parsed JSON file. */
  readonly file?: { readonly path: string; readonly content: unknown };
}

export function flagName(name: SettingName): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function variableName(name: SettingName): string {
  return `SOLEHOLD_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** Variables that other parts read or set, and those that Kubernetes makes for a service of the name solehold. */
const OTHER_VARIABLES =
  /^SOLEHOLD_(API_KEY|CONFIG|TENANT|HOLDER|TOKEN|URL|PREFIX|KEY|FENCE|EXPIRES_AT|WRITER_.+|ENGINES.*|EFFORT|KILLS|.+_SECONDS|FUZZ_.+|SERVICE_.+|PORT_.+)$/;

export function resolveConfig({ flags = {}, env = {}, file }: ConfigSources = {}): ServerConfig {
  assertKnownVariables(env);
  const fromFile = file === undefined ? {} : checkedFile(file);
  const values: Record<string, unknown> = {};
  for (const name of SETTING_NAMES) {
    const sources: readonly (readonly [string, unknown])[] = [
      [`--${flagName(name)}`, flags[name]],
      [variableName(name), env[variableName(name)]],
      [`${name} in ${file?.path ?? ""}`, fromFile[name]],
    ];
    const given = sources.find(([, value]) => value !== undefined);
    values[name] = given === undefined ? SETTINGS[name].fallback : readSetting(name, given);
  }
  const config = values as unknown as ServerConfig;
  return config.store === "" ? { ...config, store: `embedded:${config.dataDir}/data` } : config;
}

/** The file that `--config` or SOLEHOLD_CONFIG names. */
export async function readConfigFile(path: string): Promise<{ path: string; content: unknown }> {
  try {
    return { path, content: JSON.parse(await readFile(path, "utf8")) };
  } catch (cause) {
    const reason = cause instanceof SyntaxError ? "is not JSON" : "cannot be read";
    throw new ConfigError(`the config file ${path} ${reason}: ${(cause as Error).message}`, { cause });
  }
}

function checkedFile({
  path,
  content,
}: {
  path: string;
  content: unknown;
}): Readonly<Record<string, unknown>> {
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw new ConfigError(`the config file ${path} must hold a JSON object`);
  }
  const unknown = Object.keys(content).find((name) => !Object.hasOwn(SETTINGS, name));
  if (unknown === undefined) return content as Readonly<Record<string, unknown>>;
  throw new ConfigError(
    `the config file ${path} has the unknown setting '${unknown}': the settings are ${SETTING_NAMES.join(", ")}`,
  );
}

function assertKnownVariables(env: Readonly<Record<string, string | undefined>>): void {
  const known = new Set(SETTING_NAMES.map(variableName));
  for (const name of Object.keys(env)) {
    if (!name.startsWith("SOLEHOLD_") || known.has(name) || OTHER_VARIABLES.test(name)) continue;
    const plain = (text: string): string => text.replaceAll("_", "");
    const meant = [...known].find((each) => plain(each) === plain(name));
    const hint =
      meant === undefined ? "'solehold serve --help' lists the settings" : `did you mean ${meant}?`;
    throw new ConfigError(`the environment variable ${name} is no setting: ${hint}`);
  }
}

function readSetting(name: SettingName, [where, given]: readonly [string, unknown]): unknown {
  try {
    return SETTINGS[name].read(given);
  } catch (cause) {
    const wanted = cause instanceof RangeError ? cause.message : "something else";
    throw new ConfigError(`${where} must be ${wanted}, got ${JSON.stringify(given)}`);
  }
}
