/** What can be set, checked when the store is opened: a wrong value is refused at once, by its name. */
import { isIP } from "node:net";
import { assertWholeNumbers, type StoreError } from "../../store/index.ts";
import {
  assertOneOf,
  type CallOptions,
  decodedPart,
  optionError,
  withoutPassword,
} from "../support/options.ts";
import type { Durability } from "./acknowledgement.ts";

/** A client or cluster of ioredis or node-redis. Only its settings are taken, by duplicating it. */
export interface RedisClient {
  duplicate(...overrides: never[]): unknown;
}

interface CommonOptions extends CallOptions {
  /** All keys begin with this, in braces, and lie in one slot of a Redis Cluster. Default `solehold:`. */
  readonly prefix?: string;
  /** How many replicas must have a write before it is acknowledged (WAIT). Default 0: nobody is waited for. */
  readonly replicas?: number;
  /**
   * "server" (the default): writes are synced to disk as the server is configured. "wait": a write is acknowledged when
   * the disks of the primary and of `replicas` replicas have it (WAITAOF, Redis 7.2 and later).
   */
  readonly fsync?: "server" | "wait";
}

export type RedisStoreOptions = CommonOptions &
  (
    | {
        /**
         * `redis://user:password@host:6379/0`, or `rediss:` for TLS; after a `?` may stand `replicas` and `fsync`. Needs
         * the package ioredis.
         */
        readonly url: string;
      }
    | {
        /** Your client's settings are used; its connection is not: the store opens its own. */
        readonly client: RedisClient;
      }
  );

export const problem = optionError.bind(null, "redis");
const PREFIX = /^[\x21-\x7a|~]{1,64}$/;

export function settingsFrom(options: RedisStoreOptions) {
  if ("url" in options === "client" in options) {
    const given = "url" in options ? "both" : "none";
    throw problem("url", "or client must be given, either the one or the other", given);
  }
  const { server, inUrl } = "url" in options ? parseRedisUrl(options.url) : { server: null, inUrl: {} };
  const {
    prefix = "solehold:",
    timeoutMs = 5_000,
    replicas = 0,
    fsync = "server",
  } = { ...inUrl, ...options };
  const rule = "must have 1 to 64 printable ASCII characters without spaces or braces";
  if (typeof prefix !== "string" || !PREFIX.test(prefix)) throw problem("prefix", rule, prefix);
  assertWholeNumbers("redis", { timeoutMs }, 1);
  assertWholeNumbers("redis", { replicas }, 0, 1_000);
  assertOneOf("redis", "fsync", fsync, ["server", "wait"]);
  const durability: Durability = { replicas, fsync };
  return { server, prefix, timeoutMs, durability };
}

export type RedisServer = ReturnType<typeof parseRedisUrl>["server"];

/** The server, with the names that ioredis has for the parts; and what to wait for, where only a URL can be given. */
function parseRedisUrl(text: string) {
  const wrong = (rule: string): StoreError => problem("url", rule, withoutPassword(text));
  if (!URL.canParse(text))
    throw wrong("must look like redis://user:password@host:6379/0, with one host and a port up to 65535");
  const { protocol, hostname, port, pathname, username, password, searchParams, hash } = new URL(text);
  if (protocol !== "redis:" && protocol !== "rediss:") throw wrong("must begin with redis: or rediss:");
  if (hostname === "") throw wrong("must name a host, as in redis://host:6379/0");
  const { replicas, fsync, ...others } = Object.fromEntries(searchParams);
  if (hash !== "" || Object.keys(others).length > 0)
    throw wrong("may only have replicas and fsync after a '?': pass other options, or a client, instead");
  const db = /^\/?(\d{0,9})$/.exec(pathname)?.[1];
  if (db === undefined) throw wrong("must end in the number of a database, as in /0");
  const host = hostname.replace(/^\[|\]$/g, "");
  const server = {
    host,
    port: Number(port || 6_379),
    db: Number(db),
    ...(username === "" ? {} : { username: decodedPart("redis", "user", username) }),
    ...(password === "" ? {} : { password: decodedPart("redis", "password", password) }),
    ...(protocol === "redis:" ? {} : { tls: isIP(host) === 0 ? { servername: host } : {} }),
  };
  const inUrl = {
    ...(replicas !== undefined && { replicas: Number(replicas || "?") }),
    ...(fsync !== undefined && { fsync: fsync as Durability["fsync"] }),
  };
  return { server, inUrl };
}
