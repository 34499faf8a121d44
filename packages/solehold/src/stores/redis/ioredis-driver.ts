/**
 * ioredis, for a single server, for Sentinel, or for a Cluster, through the few methods that are used. The client that
 * was given is duplicated with its retries, queues and time limits off: a request is sent once, or not at all.
 */
import type { ConnectionEvents, RedisArgument, RedisConnection, RedisDriver } from "./driver.ts";

/** What is used of an ioredis client. */
export interface IoRedisClient {
  readonly options?: { readonly host?: unknown; readonly port?: unknown };
  duplicate(...overrides: never[]): unknown;
  connect(): Promise<unknown>;
  disconnect(): void;
  call(command: string, args: RedisArgument[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (...values: never[]) => void): unknown;
}

/** What is used of an ioredis Cluster. */
export interface IoRedisCluster extends IoRedisClient {
  readonly isCluster: true;
  /** By slot, the nodes that have it, as "host:port", the primary first. */
  readonly slots: readonly (readonly string[] | undefined)[];
  nodes(role: "all"): unknown[];
}

/** In place of what the given client has. */
export function ioRedisOptions(timeoutMs: number) {
  return {
    lazyConnect: true,
    connectTimeout: timeoutMs,
    retryStrategy: null,
    reconnectOnError: null,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    enableAutoPipelining: false,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: undefined,
    blockingTimeout: undefined,
    socketTimeout: undefined,
    readOnly: false,
    keyPrefix: "",
    stringNumbers: false,
  };
}

export function ioRedisDriver(address: string, create: () => IoRedisClient): RedisDriver {
  return { address, connect: (events, signal) => connect(create(), events, signal) };
}

/**
 * All keys of a prefix lie in one slot, so the cluster is only asked which node has it. A slot that moves, or a node
 * that is replaced, ends the connection, and the cluster is asked again.
 */
export function ioRedisClusterDriver(
  cluster: IoRedisCluster,
  slotKey: string,
  timeoutMs: number,
): RedisDriver {
  return {
    address: "the cluster",
    connect: async (events, signal) => {
      // One that cannot reach its nodes gives up, so that the store can say so.
      const options = { lazyConnect: true, clusterRetryStrategy: null } as never;
      const own = cluster.duplicate([] as never, options) as IoRedisCluster;
      try {
        await connected(own, signal);
        return await connect(await nodeOf(own, slotKey, timeoutMs), events, signal);
      } finally {
        own.disconnect();
      }
    },
  };
}

async function nodeOf(cluster: IoRedisCluster, slotKey: string, timeoutMs: number): Promise<IoRedisClient> {
  const slot = Number(await cluster.call("cluster", ["keyslot", slotKey]));
  const primary = cluster.slots[slot]?.[0];
  const nodes = cluster.nodes("all") as IoRedisClient[];
  const node = nodes.find(({ options }) => `${options?.host}:${options?.port}` === primary);
  if (node === undefined) throw new Error(`CLUSTERDOWN no node serves slot ${slot}`);
  return node.duplicate(ioRedisOptions(timeoutMs) as never) as IoRedisClient;
}

async function connect(
  client: IoRedisClient,
  { onEnd, onMessage }: ConnectionEvents,
  signal: AbortSignal,
): Promise<RedisConnection> {
  client.on("end", onEnd);
  client.on("message", onMessage);
  await connected(client, signal);
  return {
    call: (command, args) => client.call(command, args as RedisArgument[]),
    subscribe: (channel) => client.subscribe(channel),
    unsubscribe: (channel) => client.unsubscribe(channel),
    close: () => client.disconnect(),
  };
}

async function connected(client: IoRedisClient, signal: AbortSignal): Promise<void> {
  let reason: Error | null = null;
  const giveUp = (): void => client.disconnect();
  // Without a listener ioredis prints errors; the reason that counts is the first one.
  client.on("error", (error: Error) => {
    reason ??= error;
  });
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    await client.connect();
    // ioredis only reports a failed SELECT, and would go on in another database.
    if (reason !== null) throw reason;
  } catch (error) {
    client.disconnect();
    throw reason ?? error;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}
