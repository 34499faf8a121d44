/** Opening: from options to a store that has reached its server once. */
import { realEnv } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import { assertOptions } from "../support/options.ts";
import { acknowledgementOf } from "./acknowledgement.ts";
import type { RedisDriver } from "./driver.ts";
import {
  type IoRedisClient,
  type IoRedisCluster,
  ioRedisClusterDriver,
  ioRedisDriver,
  ioRedisOptions,
} from "./ioredis-driver.ts";
import { RedisLayout } from "./layout.ts";
import {
  type NodeRedisClient,
  type NodeRedisCluster,
  nodeRedisClusterDriver,
  nodeRedisDriver,
} from "./node-redis-driver.ts";
import {
  parseRedisUrl,
  problem,
  type RedisAddress,
  type RedisStoreOptions,
  settingsFrom,
} from "./options.ts";
import { RedisStore } from "./store.ts";

/** Resolves when the server has answered; rejects with a StoreError that says what to do. */
export async function openRedisStore(options: RedisStoreOptions): Promise<RedisStore> {
  assertOptions("openRedisStore", options, '{ url: "redis://localhost:6379" }');
  const { prefix, timeoutMs, durability } = settingsFrom(options);
  if ("url" in options === "client" in options) {
    const given = "url" in options ? "both" : "none";
    throw problem("url", "or client must be given, either the one or the other", given);
  }
  const layout = new RedisLayout(prefix);
  const driver =
    "url" in options
      ? await driverForUrl(parseRedisUrl(options.url), timeoutMs)
      : driverForClient(options.client, layout.identityKey, timeoutMs);
  const acknowledgement = acknowledgementOf(durability, timeoutMs);
  const { env = realEnv } = options;
  return RedisStore.open({ env, driver, timeoutMs, acknowledgement }, layout, durability);
}

async function driverForUrl(address: RedisAddress, timeoutMs: number): Promise<RedisDriver> {
  const { Redis } = await import("ioredis").catch((cause: unknown) => {
    const message = "redis: the package ioredis is missing: run `npm install ioredis`";
    throw new StoreError("config", message, { outcome: "not-applied", cause });
  });
  const name = `${address.host}:${address.port}${address.tls === undefined ? "" : " (TLS)"}`;
  const settings = { ...address, ...ioRedisOptions(timeoutMs) };
  return ioRedisDriver(name, () => new Redis(settings as never) as IoRedisClient);
}

/** Clients are told apart by what they can do, so that those of another copy of a package are recognised, too. */
function driverForClient(client: unknown, slotKey: string, timeoutMs: number): RedisDriver {
  const has = (...names: readonly string[]): boolean =>
    typeof client === "object" && client !== null && names.every((name) => name in client);
  if (has("isCluster", "slots", "nodes", "duplicate")) {
    return ioRedisClusterDriver(client as IoRedisCluster, slotKey, timeoutMs);
  }
  if (has("call", "disconnect", "duplicate")) {
    const given = client as IoRedisClient;
    const create = (): IoRedisClient => given.duplicate(ioRedisOptions(timeoutMs) as never) as IoRedisClient;
    return ioRedisDriver(addressOf(given.options), create);
  }
  if (has("getNodeClientForKey", "duplicate")) {
    return nodeRedisClusterDriver(client as NodeRedisCluster, slotKey, timeoutMs);
  }
  if (has("sendCommand", "acquire")) {
    const advice = "for Sentinel pass an ioredis client with `sentinels`, instead of a pool one client";
    throw problem("client", `must not be a Sentinel or a pool of node-redis: ${advice}`, nameOf(client));
  }
  if (has("sendCommand", "destroy", "duplicate")) {
    const given = client as NodeRedisClient;
    const { socket } = (given.options ?? {}) as { readonly socket?: unknown };
    return nodeRedisDriver(addressOf(socket), given, timeoutMs);
  }
  throw problem("client", "must be a client or a cluster of ioredis or node-redis", nameOf(client));
}

function nameOf(client: unknown): string {
  return typeof client === "object" && client !== null ? client.constructor.name : typeof client;
}

/** Host and port, the path of a socket, or the name of a group that Sentinel looks after. */
function addressOf(options: unknown): string {
  const {
    host = "localhost",
    port = 6_379,
    path,
    sentinels,
    name,
  } = (options ?? {}) as Readonly<Record<string, unknown>>;
  if (Array.isArray(sentinels)) return `${String(name)} (Sentinel)`;
  return typeof path === "string" ? path : `${String(host)}:${String(port)}`;
}
