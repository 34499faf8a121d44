/**
 * What an operator does to a bucket behind the store's back, through the official key-value client. Each
 * action has a connection of its own, because the servers of these tests die in between.
 */
import { jetstreamManager, type StreamAPI, type StreamConfig } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import { connect, createInbox, type NatsConnection } from "@nats-io/transport-node";

export interface Backup {
  readonly config: unknown;
  readonly state: unknown;
  readonly chunks: readonly Uint8Array[];
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

  buckets(): Promise<string[]> {
    return this.#withStreams(async (streams) => {
      const names: string[] = [];
      for await (const name of streams.names()) names.push(name.replace(/^KV_/, ""));
      return names;
    });
  }

  bucketInfo(bucket: string) {
    return this.#withStreams((streams) => streams.info(`KV_${bucket}`));
  }

  /** As `nats stream backup` does. */
  backup(bucket: string): Promise<Backup> {
    return this.#withConnection(async (connection) => {
      const inbox = createInbox();
      const messages = connection.subscribe(inbox);
      const request = JSON.stringify({ deliver_subject: inbox });
      const reply = await connection.request(`$JS.API.STREAM.SNAPSHOT.KV_${bucket}`, request);
      const { config, state } = reply.json<Pick<Backup, "config" | "state">>();
      const chunks: Uint8Array[] = [];
      for await (const message of messages) {
        if (message.data.length === 0) break;
        chunks.push(message.data.slice());
        message.respond();
      }
      return { config, state, chunks };
    });
  }

  /** As `nats stream restore` does, in place of what is there. */
  restore(bucket: string, { config, state, chunks }: Backup): Promise<void> {
    return this.#withConnection(async (connection) => {
      await (await jetstreamManager(connection)).streams.delete(`KV_${bucket}`);
      const request = JSON.stringify({ config, state });
      const reply = await connection.request(`$JS.API.STREAM.RESTORE.KV_${bucket}`, request);
      const { deliver_subject: target } = reply.json<{ readonly deliver_subject: string }>();
      for (const chunk of [...chunks, new Uint8Array(0)]) await connection.request(target, chunk);
    });
  }

  consumers(bucket: string): Promise<string[]> {
    return this.#withConnection(async (connection) => {
      const names: string[] = [];
      const { consumers } = await jetstreamManager(connection);
      for await (const { name } of consumers.list(`KV_${bucket}`)) names.push(name);
      return names;
    });
  }

  /** How many there were. */
  async deleteConsumers(bucket: string): Promise<number> {
    const names = await this.consumers(bucket);
    await this.#withConnection(async (connection) => {
      const { consumers } = await jetstreamManager(connection);
      for (const name of names) await consumers.delete(`KV_${bucket}`, name);
    });
    return names.length;
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

  /** Removes all that was ever stored under the key, whatever the id of the data before it. */
  purgeKey(bucket: string, key: string): Promise<void> {
    return this.#withStreams(async (streams) => {
      await streams.purge(`KV_${bucket}`, { filter: `$KV.${bucket}.*.${key}` });
    });
  }

  /** As `nats kv compact` does: removes the markers of deleted keys. */
  compact(bucket: string): Promise<void> {
    return this.#withStreams(async (streams) => {
      const { state } = await streams.info(`KV_${bucket}`, { subjects_filter: ">" });
      for (const filter of Object.keys(state.subjects ?? {})) {
        const message = await streams.getMessage(`KV_${bucket}`, { last_by_subj: filter });
        if (message?.header.has("KV-Operation")) await streams.purge(`KV_${bucket}`, { filter });
      }
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
