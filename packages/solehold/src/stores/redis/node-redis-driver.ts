/**
 * node-redis (the package `redis`), for a single server or a cluster, through the few methods that are used. The client
 * that was given is duplicated with its reconnecting and its queue off: a request is sent once, or not at all.
 */
import type { ConnectionEvents, RedisArgument, RedisConnection, RedisDriver } from "./driver.ts";

/** What is used of a node-redis client. */
export interface NodeRedisClient {
  readonly options?: unknown;
  duplicate(overrides?: never): unknown;
  connect(): Promise<unknown>;
  sendCommand(args: RedisArgument[]): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (...values: never[]) => void): unknown;
  destroy(): void;
}

/** What is used of a node-redis cluster. */
export interface NodeRedisCluster {
  duplicate(overrides?: never): unknown;
  connect(): Promise<unknown>;
  getNodeClientForKey(key: string, isReadonly: false): Promise<NodeRedisClient>;
  on(event: string, listener: (...values: never[]) => void): unknown;
  destroy(): void;
}

export function nodeRedisDriver(address: string, client: NodeRedisClient, timeoutMs: number): RedisDriver {
  return { address, connect: (events, signal) => connect(client, timeoutMs, events, signal) };
}

/** As with ioredis: the cluster is only asked which node has the slot of the prefix. */
export function nodeRedisClusterDriver(
  cluster: NodeRedisCluster,
  slotKey: string,
  timeoutMs: number,
): RedisDriver {
  return {
    address: "the cluster",
    connect: async (events, signal) => {
      const own = cluster.duplicate() as NodeRedisCluster;
      own.on("error", () => undefined);
      const giveUp = (): void => destroy(own);
      signal.addEventListener("abort", giveUp, { once: true });
      try {
        await own.connect();
        const node = await own.getNodeClientForKey(slotKey, false);
        return await connect(node, timeoutMs, events, signal);
      } finally {
        signal.removeEventListener("abort", giveUp);
        destroy(own);
      }
    },
  };
}

async function connect(
  client: NodeRedisClient,
  timeoutMs: number,
  { onEnd, onMessage }: ConnectionEvents,
  signal: AbortSignal,
): Promise<RedisConnection> {
  const { socket } = (client.options ?? {}) as { readonly socket?: object };
  const options = {
    socket: { ...socket, reconnectStrategy: false, connectTimeout: timeoutMs, socketTimeout: undefined },
    disableOfflineQueue: true,
    commandOptions: undefined,
    readonly: false,
  };
  const own = client.duplicate(options as never) as NodeRedisClient;
  let reason: Error | null = null;
  const end = (): void => {
    destroy(own);
    onEnd();
  };
  own.on("error", (error: Error) => {
    reason ??= error;
    end();
  });
  own.on("end", end);
  signal.addEventListener("abort", end, { once: true });
  try {
    await own.connect();
  } catch (error) {
    destroy(own);
    throw reason ?? error;
  } finally {
    signal.removeEventListener("abort", end);
  }
  const hear = (message: string, channel: string): void => onMessage(channel, message);
  return {
    call: (command, args) => own.sendCommand([command, ...args]),
    subscribe: (channel) => own.subscribe(channel, hear),
    unsubscribe: (channel) => own.unsubscribe(channel),
    close: () => destroy(own),
  };
}

/** node-redis throws when the client is closed already, which is what was wanted. */
function destroy(client: { destroy(): void }): void {
  try {
    client.destroy();
  } catch {
    return;
  }
}
