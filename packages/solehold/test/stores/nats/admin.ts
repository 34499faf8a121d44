/**
 * What an operator does to a bucket behind the store's back, through the official key-value client. Each
 * action has a connection of its own, because the servers of these tests die in between.
 */
import { jetstreamManager, type StreamAPI, type StreamConfig } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";

/** A message as a server would send it to a watcher. */
export interface Delivery {
  /** Of a status message. */
  readonly status?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly reply?: string;
}

export class Admin {
  readonly #url: URL;

  constructor(url: string) {
    this.#url = new URL(url.replace("nats:", "http:"));
  }

  createBucket(bucket: string, changes: Partial<StreamConfig> = {}): Promise<void> {
    return this.#withStreams(async (streams) => {
      await streams.add({
        name: `KV_${bucket}`,
        subjects: [`$KV.${bucket}.>`],
        max_msgs_per_subject: 1,
        discard: "new",
        allow_direct: true,
        allow_rollup_hdrs: true,
        deny_delete: true,
        ...changes,
      } as Parameters<StreamAPI["add"]>[0]);
    });
  }

  async deleteBucket(bucket: string): Promise<void> {
    await this.#withStreams((streams) => streams.delete(`KV_${bucket}`));
  }

  async purgeBucket(bucket: string): Promise<void> {
    await this.#withStreams((streams) => streams.purge(`KV_${bucket}`));
  }

  bucketInfo(bucket: string) {
    return this.#withStreams((streams) => streams.info(`KV_${bucket}`));
  }

  /** As `nats kv ls` shows them: those that have a value. */
  keys(bucket: string): Promise<string[]> {
    return this.#withBucket(bucket, async (kv) => {
      const names: string[] = [];
      for await (const name of await kv.keys()) names.push(name);
      return names;
    });
  }

  get(bucket: string, key: string): Promise<string | null> {
    return this.#withBucket(bucket, async (kv) => (await kv.get(key))?.string() ?? null);
  }

  put(bucket: string, key: string, value: string): Promise<number> {
    return this.#withBucket(bucket, (kv) => kv.put(key, value));
  }

  /** Writes to the key until the stream has reached this sequence. */
  putUpTo(bucket: string, key: string, sequence: number): Promise<void> {
    return this.#withBucket(bucket, async (kv) => {
      while ((await kv.put(key, "")) < sequence);
    });
  }

  async delete(bucket: string, keys: readonly string[]): Promise<void> {
    await this.#withBucket(bucket, (kv) => Promise.all(keys.map((key) => kv.delete(key))));
  }

  /** Sends this to the one who watches the bucket, as its consumer would; the subject that was answered to. */
  deliver(bucket: string, delivery: Delivery): Promise<string | null> {
    return this.#withConnection(async (connection) => {
      const { consumers } = await jetstreamManager(connection);
      const [info] = await consumers.list(`KV_${bucket}`).next();
      const answers: string[] = [];
      connection.subscribe("$JS.FC.>", { callback: (_, { subject }) => void answers.push(subject) });
      const fields = delivery.status === undefined ? headers() : headers(100, delivery.status);
      for (const [name, value] of Object.entries(delivery.headers ?? {})) fields.set(name, value);
      const { reply } = delivery;
      const options = { headers: fields, ...(reply === undefined ? {} : { reply }) };
      connection.publish(info?.config.deliver_subject ?? "", "", options);
      // A round trip to the server, and time for one of the watcher's.
      for (let round = 0; round < 20 && answers.length === 0; round += 1) {
        await connection.flush();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return answers[0] ?? null;
    });
  }

  #withBucket<T>(bucket: string, act: (kv: KV) => Promise<T>): Promise<T> {
    return this.#withConnection(async (connection) => act(await new Kvm(connection).open(bucket)));
  }

  #withStreams<T>(act: (streams: StreamAPI) => Promise<T>): Promise<T> {
    return this.#withConnection(async (connection) => act((await jetstreamManager(connection)).streams));
  }

  async #withConnection<T>(act: (connection: NatsConnection) => Promise<T>): Promise<T> {
    const { host, username, password } = this.#url;
    const user = username === "" ? {} : { user: username, pass: password };
    const connection = await connect({ servers: host, ...user });
    try {
      return await act(connection);
    } finally {
      await connection.close();
    }
  }
}
