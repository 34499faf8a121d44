/** Opening: from options to a store that has reached its server once. */
import type { Cluster, Redis } from "ioredis";
import type { RedisClientType, RedisClusterType } from "redis";
import { realEnv } from "../../env/index.ts";
import { assertOptions, loadPackage } from "../support/options.ts";
import type { RedisDriver } from "./driver.ts";
import { ioRedisClusterDriver, ioRedisDriver, ioRedisOptions } from "./ioredis-driver.ts";
import { redisLayout } from "./layout.ts";
import { nodeRedisClusterDriver, nodeRedisDriver } from "./node-redis-driver.ts";
import { problem, type RedisServer, type RedisStoreOptions, settingsFrom } from "./options.ts";
import { type RedisStore, redisStore } from "./store.ts";

/** Resolves when the server has answered; rejects with a StoreError that says what to do. */
export async function openRedisStore(options: RedisStoreOptions): Promise<RedisStore> {
  const known = "url client prefix timeoutMs replicas fsync";
  assertOptions("openRedisStore", options, '{ url: "redis://localhost:6379" }', known);
  const { server, prefix, timeoutMs, durability } = settingsFrom(options);
  const layout = redisLayout(prefix);
  const driver =
    server === null
      ? driverForClient("client" in options && options.client, layout.identityKey, timeoutMs)
      : await driverForServer(server, timeoutMs);
  const { env = realEnv } = options;
  return redisStore({ env, driver, timeoutMs }, layout, durability);
}

async function driverForServer(server: RedisServer, timeoutMs: number): Promise<RedisDriver> {
  const ioredis = await loadPackage("redis", "ioredis", () => import("ioredis"));
  const name = `${server.host}:${server.port}${server.tls === undefined ? "" : " (TLS)"}`;
  return ioRedisDriver(name, () => new ioredis.Redis({ ...server, ...ioRedisOptions(timeoutMs) } as never));
}

/** Clients are distinguished by what they can do, so that those of another copy of a package are recognised, too. */
function driverForClient(client: unknown, slotKey: string, timeoutMs: number): RedisDriver {
  const isObject = typeof client === "object" && client !== null;
  const name = isObject ? client.constructor.name : typeof client;
  const has = (...members: readonly string[]): boolean => isObject && members.every((each) => each in client);
  if (has("isCluster", "slots", "nodes", "duplicate")) {
    return ioRedisClusterDriver(client as Cluster, slotKey, timeoutMs);
  }
  if (has("call", "disconnect", "duplicate")) {
    const given = client as Redis;
    return ioRedisDriver(addressOf(given.options), () => given.duplicate(ioRedisOptions(timeoutMs)));
  }
  if (has("getNodeClientForKey", "duplicate")) {
    return nodeRedisClusterDriver(client as RedisClusterType, slotKey, timeoutMs);
  }
  if (has("sendCommand", "destroy", "duplicate") && !has("acquire")) {
    const given = client as RedisClientType;
    return nodeRedisDriver(addressOf(given.options?.socket), given, timeoutMs);
  }
  const rule = "must be a client or a cluster of ioredis or node-redis, not a pool of clients";
  throw problem("client", `${rule} (for Sentinel an ioredis client with \`sentinels\`)`, name);
}

/** Host and port, the path of a socket, or the name of a group that Sentinel looks after. */
function addressOf(options: unknown): string {
  const given = (options ?? {}) as Readonly<Record<string, unknown>>;
  if (given.sentinels) return `${given.name} (Sentinel)`;
  return String(given.path ?? `${given.host ?? "localhost"}:${given.port ?? 6_379}`);
}
