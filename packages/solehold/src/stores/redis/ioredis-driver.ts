/**
 * ioredis, for a single server, for Sentinel, or for a Cluster. The client that was given is duplicated with its
 * retries, queues and time limits off: a request is sent once, or not at all.
 */
import type { Cluster, Redis, RedisOptions } from "ioredis";
import type { ConnectionEvents, RedisConnection, RedisDriver } from "./driver.ts";

/** In place of what the given client has. */
export function ioRedisOptions(timeoutMs: number): RedisOptions {
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

export function ioRedisDriver(address: string, create: () => Redis): RedisDriver {
  return { address, connect: (events, signal) => connect(create(), events, signal) };
}

/**
 * All keys of a prefix lie in one slot, so the cluster is only asked which node has it. A slot that moves, or a node
 * that is replaced, ends the connection, and the cluster is asked again.
 */
export function ioRedisClusterDriver(cluster: Cluster, slotKey: string, timeoutMs: number): RedisDriver {
  return {
    address: "the cluster",
    connect: async (events, signal) => {
      // One that cannot reach its nodes gives up, so that the store can say so.
      const own = cluster.duplicate([], { lazyConnect: true, clusterRetryStrategy: () => null });
      try {
        await connected(own, signal);
        const slot = Number(await own.call("cluster", ["keyslot", slotKey]));
        const isPrimary = ({ options: { host, port } }: Redis): boolean =>
          `${host}:${port}` === own.slots[slot]?.[0];
        const node = own.nodes("all").find(isPrimary);
        if (node === undefined) throw new Error(`CLUSTERDOWN no node serves slot ${slot}`);
        return await connect(node.duplicate(ioRedisOptions(timeoutMs)), events, signal);
      } finally {
        own.disconnect();
      }
    },
  };
}

async function connect(
  client: Redis,
  { onEnd, onMessage }: ConnectionEvents,
  signal: AbortSignal,
): Promise<RedisConnection> {
  client.on("end", onEnd).on("message", onMessage);
  await connected(client, signal);
  return {
    call: (command, args) => client.call(command, args as (string | Buffer)[]),
    subscribe: (channel) => client.subscribe(channel),
    close: () => client.disconnect(),
  };
}

async function connected(client: Redis | Cluster, signal: AbortSignal): Promise<void> {
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
