/** ioredis, standalone or Cluster, through the few methods that are used. Its own retries are off. */
import type { ConnectionLife, RedisArgument, RedisDriver, RedisWire, Subscription } from "./driver.ts";
import { requestText } from "./request-text.ts";

/** What is used of an ioredis client. */
export interface IoRedisClient {
  readonly status: string;
  duplicate(...overrides: never[]): unknown;
  connect(): Promise<unknown>;
  disconnect(): void;
  call(command: string, args: RedisArgument[]): Promise<unknown>;
  sendCommand(command: object): Promise<unknown>;
  subscribe(...channels: readonly string[]): Promise<unknown>;
  on(event: string, listener: (...values: never[]) => void): unknown;
}

/** What is used of ioredis' commands. */
export type IoRedisCommandClass = new (
  name: string,
  args: RedisArgument[],
  options: { readonly replyEncoding: "utf8" },
) => { toWritable(socket: object): string | Buffer };

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

/** With `Command`, the class of the very package that the clients are of, requests are encoded here. */
export function ioRedisDriver(
  address: string,
  timeoutMs: number,
  create: ClientFactory,
  Command: IoRedisCommandClass | null,
): RedisDriver {
  const open = async (life: ConnectionLife): Promise<IoRedisClient> => {
    const client = create({ ...OPTIONS, connectTimeout: timeoutMs });
    await connectIoRedis(client, life);
    return client;
  };
  return {
    address,
    topology: "single",
    connect: async (life) => wireOf(await open(life), Command),
    subscribe: async (channels, onMessage, life) => subscribeWith(await open(life), channels, onMessage),
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
      const wire = wireOf(cluster, null);
      return {
        ...wire,
        get epoch() {
          return epoch;
        },
      };
    },
    /** News reach every node, so any one will do; after a failure the next attempt tries another. */
    subscribe: async (channels, onMessage, life) => {
      const nodes = (latest?.nodes("all") ?? []) as IoRedisClient[];
      const node = nodes[Math.floor(nodes.length * spread())];
      if (node === undefined) throw new Error("the cluster has no reachable node");
      const options = { ...OPTIONS, connectTimeout: timeoutMs } as never;
      const client = node.duplicate(options) as IoRedisClient;
      await connectIoRedis(client, life);
      return subscribeWith(client, channels, onMessage);
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

function wireOf(client: IoRedisClient, Command: IoRedisCommandClass | null): RedisWire {
  return {
    epoch: 0,
    call:
      Command === null ? (name, args) => client.call(name, args as RedisArgument[]) : callOf(client, Command),
    close: () => client.disconnect(),
  };
}

/**
 * Encodes by itself: ioredis looks at every argument several times. The command does not get the arguments: commands
 * outlive their replies, and what they refer to would cost the collector more than the whole call.
 */
function callOf(client: IoRedisClient, Command: IoRedisCommandClass): RedisWire["call"] {
  class EncodedCommand extends Command {
    readonly #text: string;

    constructor(name: string, text: string) {
      super(name, [], { replyEncoding: "utf8" });
      this.#text = text;
    }

    override toWritable(): string {
      return this.#text;
    }
  }
  return (name, args) => {
    const text = requestText(name, args);
    return text === null
      ? client.call(name, args as RedisArgument[])
      : client.sendCommand(new EncodedCommand(name, text));
  };
}

async function subscribeWith(
  client: IoRedisClient,
  channels: readonly string[],
  onMessage: (message: string) => void,
): Promise<Subscription> {
  client.on("message", (_channel: string, message: string) => onMessage(message));
  try {
    await client.subscribe(...channels);
  } catch (error) {
    client.disconnect();
    throw error;
  }
  return { close: () => client.disconnect(), ping: () => client.call("PING", []) };
}
