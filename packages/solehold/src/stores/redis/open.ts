/** Opening: from options to a store that has reached its server once. */
import { realEnv } from "../../env/index.ts";
import { StoreError } from "../../store/index.ts";
import { assertOptions } from "../support/options.ts";
import { RedisConnection } from "./connection.ts";
import type { RedisDriver } from "./driver.ts";
import {
  type IoRedisClient,
  type IoRedisCluster,
  type IoRedisCommandClass,
  ioRedisClusterDriver,
  ioRedisDriver,
} from "./ioredis-driver.ts";
import { type NodeRedisClient, nodeRedisDriver } from "./node-redis-driver.ts";
import {
  parseRedisUrl,
  problem,
  type RedisAddress,
  type RedisClient,
  type RedisStoreOptions,
  settingsFrom,
} from "./options.ts";
import { RedisStore } from "./store.ts";

/** Resolves when the server has answered; rejects with a StoreError that says what to do. */
export async function openRedisStore(options: RedisStoreOptions): Promise<RedisStore> {
  assertOptions("openRedisStore", options, '{ url: "redis://localhost:6379" }');
  const settings = settingsFrom(options);
  if ("url" in options === "client" in options) {
    throw problem(
      "url",
      "or client must be given, either the one or the other",
      "url" in options ? "both" : "none",
    );
  }
  const env = options.env ?? realEnv;
  const driver =
    "url" in options
      ? await driverForUrl(parseRedisUrl(options.url), settings.timeoutMs)
      : await driverForClient(options.client, settings.timeoutMs);
  const connection = await RedisConnection.open(env, driver, settings.timeoutMs);
  try {
    return await RedisStore.open({ env, driver, connection, settings });
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** As much of the package as is used, so that its types are not needed by those who use another client. */
interface IoRedisPackage {
  readonly Redis: new (options: never) => unknown;
  readonly Command: IoRedisCommandClass;
}

async function loadIoRedis(): Promise<IoRedisPackage> {
  try {
    return await import("ioredis");
  } catch (cause) {
    throw new StoreError("config", "redis: the package ioredis is missing: run `npm install ioredis`", {
      outcome: "not-applied",
      cause,
    });
  }
}

async function driverForUrl(address: RedisAddress, timeoutMs: number): Promise<RedisDriver> {
  const { Redis, Command } = await loadIoRedis();
  return ioRedisDriver(
    `${address.host}:${address.port}${address.tls === undefined ? "" : " (TLS)"}`,
    timeoutMs,
    (options) => new Redis({ ...address, ...options } as never) as IoRedisClient,
    Command,
  );
}

async function driverForClient(client: RedisClient, timeoutMs: number): Promise<RedisDriver> {
  if (typeof client !== "object" || client === null || typeof client.duplicate !== "function") {
    throw problem("client", "must be a client of ioredis or node-redis", typeof client);
  }
  if ("isCluster" in client && client.isCluster) {
    const create = (): IoRedisCluster =>
      client.duplicate([] as never, { lazyConnect: true } as never) as IoRedisCluster;
    return ioRedisClusterDriver("the cluster", timeoutMs, create);
  }
  if ("call" in client && typeof client.call === "function") {
    return ioRedisDriver(
      addressOf((client as { readonly options?: unknown }).options),
      timeoutMs,
      (options) => client.duplicate(options as never) as IoRedisClient,
      await commandClassFor(client),
    );
  }
  if ("sendCommand" in client && typeof client.sendCommand === "function" && "destroy" in client) {
    const nodeRedis = client as unknown as NodeRedisClient;
    const { socket } = (nodeRedis.options ?? {}) as { readonly socket?: unknown };
    return nodeRedisDriver(addressOf(socket), timeoutMs, nodeRedis);
  }
  throw problem("client", "must be a client of ioredis or node-redis", client.constructor.name);
}

/** Null when the client is of another copy of the package than the one that is found here. */
async function commandClassFor(client: object): Promise<IoRedisCommandClass | null> {
  const found = await loadIoRedis().catch(() => null);
  return found !== null && client instanceof found.Redis ? found.Command : null;
}

function addressOf(options: unknown): string {
  const { host = "localhost", port = 6_379, path } = (options ?? {}) as Readonly<Record<string, unknown>>;
  return typeof path === "string" ? path : `${String(host)}:${String(port)}`;
}
