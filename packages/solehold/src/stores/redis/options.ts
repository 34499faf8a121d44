/** What can be set, checked when the store is opened: a wrong value is told at once, with its name. */
import { isIP } from "node:net";
import type { Env } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";

/** A client of ioredis (standalone or Cluster) or of node-redis. Only its settings are taken, by duplicating it. */
export interface RedisClient {
  duplicate(...overrides: never[]): unknown;
}

interface CommonOptions {
  /** All keys begin with this, in braces, and lie in one slot of a Redis Cluster. Default `solehold:`. */
  readonly prefix?: string;
  /** A call that got no answer by then ends, with its outcome unknown. Default 5000. */
  readonly timeoutMs?: number;
  /**
   * What happens when Redis has lost data that this client saw. "refuse" (the default): nothing, until
   * `acceptDataLoss()` is called or the store is opened anew. Or it is accepted by itself after a time,
   * which must be longer than any ttl, so that no holder of a lost lease can still believe in it.
   */
  readonly dataLoss?: "refuse" | { readonly acceptAfterMs: number };
  readonly env?: Env;
}

export interface RedisUrlOptions extends CommonOptions {
  /** `redis://user:password@host:6379/0`, or `rediss:` for TLS. Needs the package ioredis. */
  readonly url: string;
}

export interface RedisClientOptions extends CommonOptions {
  /** Your client's settings are used; its connection is not: the store opens its own. */
  readonly client: RedisClient;
}

export type RedisStoreOptions = RedisUrlOptions | RedisClientOptions;

export interface RedisSettings {
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly acceptAfterMs: number | null;
}

const PREFIX = /^[\x21-\x7a|~]{1,64}$/;

export function settingsFrom(options: CommonOptions): RedisSettings {
  const { prefix = "solehold:", timeoutMs = 5_000, dataLoss = "refuse" } = options;
  if (!PREFIX.test(prefix)) {
    throw problem("prefix", "must have 1 to 64 printable ASCII characters without spaces or braces", prefix);
  }
  assertWhole("timeoutMs", timeoutMs, 1, 2 ** 31 - 1);
  if (dataLoss !== "refuse") assertWhole("dataLoss.acceptAfterMs", dataLoss.acceptAfterMs, 0, 2 ** 31 - 1);
  return {
    prefix,
    timeoutMs,
    acceptAfterMs: dataLoss === "refuse" ? null : dataLoss.acceptAfterMs,
  };
}

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: { readonly servername?: string };
}

const DEFAULT_PORT = 6_379;

export function parseRedisUrl(text: string): RedisAddress {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw problem("url", "must look like redis://host:6379/0", hidden(text));
  }
  if (url.protocol !== "redis:" && url.protocol !== "rediss:") {
    throw problem("url", "must begin with redis: or rediss:", hidden(text));
  }
  if (url.hostname === "") throw problem("url", "must name a host, as in redis://host:6379/0", hidden(text));
  if (url.search !== "" || url.hash !== "") {
    throw problem("url", "must not have a query: pass options, or a client, instead", hidden(text));
  }
  const db = /^\/?(\d{0,9})$/.exec(url.pathname)?.[1];
  if (db === undefined) throw problem("url", "must end in the number of a database, as in /0", hidden(text));
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return {
    host,
    port: url.port === "" ? DEFAULT_PORT : Number(url.port),
    db: Number(db),
    ...(url.username === "" ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === "" ? {} : { password: decodeURIComponent(url.password) }),
    ...(url.protocol === "rediss:" ? { tls: isIP(host) === 0 ? { servername: host } : {} } : {}),
  };
}

/** Without what stands before an "@": a message must not show a password. */
function hidden(url: string): string {
  return url.replace(/\/\/[^/]*@/, "//***@");
}

function assertWhole(name: string, value: unknown, min: number, max: number): void {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return;
  throw problem(name, `must be a whole number from ${min} to ${max}`, String(value));
}

export function problem(name: string, rule: string, value: string): StoreError {
  return new StoreError("config", `redis: ${name} ${rule}, got '${value}'`, { outcome: "not-applied" });
}
