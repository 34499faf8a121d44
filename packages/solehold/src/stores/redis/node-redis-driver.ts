/** node-redis (the package `redis`), through the few methods that are used. Its own reconnecting is off. */
import type { ConnectionLife, RedisArgument, RedisDriver } from "./driver.ts";

/** What is used of a node-redis client. */
export interface NodeRedisClient {
  readonly options?: unknown;
  duplicate(overrides: never): unknown;
  connect(): Promise<unknown>;
  sendCommand(args: RedisArgument[]): Promise<unknown>;
  subscribe(channels: string[], listener: (message: string) => void): Promise<unknown>;
  on(event: string, listener: (...values: never[]) => void): unknown;
  destroy(): void;
}

export function nodeRedisDriver(address: string, timeoutMs: number, client: NodeRedisClient): RedisDriver {
  const open = async (life: ConnectionLife): Promise<NodeRedisClient> => {
    const { socket } = (client.options ?? {}) as { readonly socket?: object };
    const options = {
      socket: { ...socket, reconnectStrategy: false, connectTimeout: timeoutMs },
      disableOfflineQueue: true,
    };
    const own = client.duplicate(options as never) as NodeRedisClient;
    let reason: Error | null = null;
    let ended = false;
    const end = (): void => {
      if (ended) return;
      ended = true;
      destroy(own);
      life.onEnd();
    };
    own.on("error", (error: Error) => {
      reason ??= error;
      end();
    });
    own.on("end", end);
    life.signal.addEventListener("abort", end, { once: true });
    try {
      await own.connect();
    } catch (error) {
      destroy(own);
      throw reason ?? error;
    } finally {
      life.signal.removeEventListener("abort", end);
    }
    return own;
  };
  return {
    address,
    topology: "single",
    connect: async (life) => {
      const own = await open(life);
      return {
        epoch: 0,
        call: (command, args) => own.sendCommand([command, ...args]),
        close: () => destroy(own),
      };
    },
    subscribe: async (channels, onMessage, life) => {
      const own = await open(life);
      try {
        await own.subscribe([...channels], (message) => onMessage(message));
      } catch (error) {
        destroy(own);
        throw error;
      }
      return { close: () => destroy(own), ping: () => own.sendCommand(["PING"]) };
    },
  };
}

/** It throws when the client is closed already, which is what was wanted. */
function destroy(client: NodeRedisClient): void {
  try {
    client.destroy();
  } catch {
    return;
  }
}
