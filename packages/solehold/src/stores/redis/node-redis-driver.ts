/**
 * node-redis (the package `redis`), for a single server or a cluster. The client that was given is duplicated with its
 * reconnecting and its queue off: a request is sent once, or not at all.
 */
import type { RedisClientType, RedisClusterType } from "redis";
import type { ConnectionEvents, RedisConnection, RedisDriver } from "./driver.ts";

export function nodeRedisDriver(address: string, client: RedisClientType, timeoutMs: number): RedisDriver {
  return { address, connect: (events, signal) => connect(client, timeoutMs, events, signal) };
}

/** As with ioredis: the cluster is only asked which node has the slot of the prefix. */
export function nodeRedisClusterDriver(
  cluster: RedisClusterType,
  slotKey: string,
  timeoutMs: number,
): RedisDriver {
  return {
    address: "the cluster",
    connect: async (events, signal) => {
      const own = cluster.duplicate();
      own.on("error", () => undefined);
      const giveUp = (): void => destroy(own);
      signal.addEventListener("abort", giveUp, { once: true });
      try {
        await own.connect();
        const node = (await own.getNodeClientForKey(slotKey, false)) as RedisClientType;
        return await connect(node, timeoutMs, events, signal);
      } finally {
        signal.removeEventListener("abort", giveUp);
        destroy(own);
      }
    },
  };
}

async function connect(
  client: RedisClientType,
  timeoutMs: number,
  { onEnd, onMessage }: ConnectionEvents,
  signal: AbortSignal,
): Promise<RedisConnection> {
  const socket = { ...client.options?.socket, reconnectStrategy: false, connectTimeout: timeoutMs };
  const options = { socket, disableOfflineQueue: true, readonly: false, commandOptions: undefined };
  const own = client.duplicate(options as object);
  let reason: Error | null = null;
  const end = (): void => {
    destroy(own);
    onEnd();
  };
  own.on("end", end).on("error", (error: Error) => {
    reason ??= error;
    end();
  });
  signal.addEventListener("abort", end, { once: true });
  try {
    await own.connect();
  } catch (error) {
    destroy(own);
    throw reason ?? error;
  } finally {
    signal.removeEventListener("abort", end);
  }
  return {
    call: (command, args) => own.sendCommand([command, ...args]),
    subscribe: (channel) => own.subscribe(channel, (message) => onMessage(channel, message)),
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
