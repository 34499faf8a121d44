/** ioredis, standalone or Cluster, through the few methods that are used. Its own retries are off. */
import type { ConnectionLife, RedisArgument, RedisDriver, RedisWire, Subscription } from "./driver.ts";

/** What is used of an ioredis client. */
export interface IoRedisClient {
  readonly status: string;
  duplicate(...overrides: never[]): unknown;
  connect(): Promise<unknown>;
  disconnect(): void;
  call(command: string, args: RedisArgument[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (...values: never[]) => void): unknown;
}

/** What is used of an ioredis Cluster. */
export interface IoRedisCluster extends IoRedisClient {
  readonly isCluster: true;
  nodes(role?: string): unknown[];
}

/**
 * Makes a client that is not connected yet. No command waits in a queue, none is sent again, and a lost
 * connection stays lost.
 */
type ClientFactory = (options: typeof OPTIONS & { readonly connectTimeout: number }) => IoRedisClient;

const OPTIONS = {
  lazyConnect: true,
  retryStrategy: null,
  reconnectOnError: null,
  enableOfflineQueue: false,
  enableReadyCheck: false,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  maxRetriesPerRequest: 0,
  keyPrefix: "",
  stringNumbers: false,
} as const;

export function ioRedisDriver(address: string, timeoutMs: number, create: ClientFactory): RedisDriver {
  const open = async (life: ConnectionLife): Promise<IoRedisClient> => {
    const client = create({ ...OPTIONS, connectTimeout: timeoutMs });
    await connectIoRedis(client, life);
    return client;
  };
  return {
    address,
    topology: "single",
    connect: async (life) => wireOf(await open(life)),
    subscribe: async (channel, onMessage, life) => subscribeWith(await open(life), channel, onMessage),
  };
}

/** A cluster keeps its own node connections, and follows slots that move: its retries must stay. */
export function ioRedisClusterDriver(
  address: string,
  timeoutMs: number,
  create: () => IoRedisCluster,
): RedisDriver {
  let latest: IoRedisCluster | null = null;
  return {
    address,
    topology: "cluster",
    connect: async (life) => {
      const cluster = create();
      let epoch = 0;
      const changed = (): void => {
        epoch += 1;
      };
      for (const event of ["+node", "-node", "node error"]) cluster.on(event, changed);
      await connectIoRedis(cluster, life);
      latest = cluster;
      const wire = wireOf(cluster);
      return {
        ...wire,
        get epoch() {
          return epoch;
        },
      };
    },
    /** News reach every node, so any one will do; after a failure the next attempt tries another. */
    subscribe: async (channel, onMessage, life) => {
      const nodes = (latest?.nodes("all") ?? []) as IoRedisClient[];
      const node = nodes[Math.floor(nodes.length * spread())];
      if (node === undefined) throw new Error("the cluster has no reachable node");
      const options = { ...OPTIONS, connectTimeout: timeoutMs } as never;
      const client = node.duplicate(options) as IoRedisClient;
      await connectIoRedis(client, life);
      return subscribeWith(client, channel, onMessage);
    },
  };
}

let turn = 0;

/** Walks over the nodes without drawing a random number. */
function spread(): number {
  turn = (turn + 0.618_033_988_75) % 1;
  return turn;
}

async function connectIoRedis(client: IoRedisClient, life: ConnectionLife): Promise<void> {
  let reason: Error | null = null;
  const giveUp = (): void => client.disconnect();
  // Without a listener ioredis prints errors; the reason that counts is the first one.
  client.on("error", (error: Error) => {
    reason ??= error;
  });
  client.on("end", life.onEnd);
  life.signal.addEventListener("abort", giveUp, { once: true });
  try {
    await client.connect();
    // It only reports a failed SELECT, and would go on in another database.
    if (reason !== null) throw reason;
  } catch (error) {
    client.disconnect();
    throw reason ?? error;
  } finally {
    life.signal.removeEventListener("abort", giveUp);
  }
}

function wireOf(client: IoRedisClient): RedisWire {
  return {
    epoch: 0,
    call: (command, args) => client.call(command, args as RedisArgument[]),
    close: () => client.disconnect(),
  };
}

async function subscribeWith(
  client: IoRedisClient,
  channel: string,
  onMessage: (message: string) => void,
): Promise<Subscription> {
  client.on("message", (_channel: string, message: string) => onMessage(message));
  try {
    await client.subscribe(channel);
  } catch (error) {
    client.disconnect();
    throw error;
  }
  return { close: () => client.disconnect(), ping: () => client.call("PING", []) };
}
