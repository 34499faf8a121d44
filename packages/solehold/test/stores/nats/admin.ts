/** What an operator does to a bucket behind the store's back, through the official key-value client. */
import { jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect, type NatsConnection } from "@nats-io/transport-node";

export class Admin {
  readonly #connection: NatsConnection;

  private constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  static async connect(url: string): Promise<Admin> {
    const { host, username, password } = new URL(url.replace("nats:", "http:"));
    const user = username === "" ? {} : { user: username, pass: password };
    const patience = { reconnectTimeWait: 20, maxReconnectAttempts: -1 };
    return new Admin(await connect({ servers: host, ...user, ...patience }));
  }

  async createBucket(bucket: string, changes: Partial<StreamConfig> = {}): Promise<void> {
    const streams = await this.#streams();
    await streams.add({
      name: `KV_${bucket}`,
      subjects: [`$KV.${bucket}.>`],
      max_msgs_per_subject: 1,
      discard: "new",
      allow_direct: true,
      allow_rollup_hdrs: true,
      deny_delete: true,
      ...changes,
    } as Parameters<typeof streams.add>[0]);
  }

  async deleteBucket(bucket: string): Promise<void> {
    await (await this.#streams()).delete(`KV_${bucket}`);
  }

  async purgeBucket(bucket: string): Promise<void> {
    await (await this.#streams()).purge(`KV_${bucket}`);
  }

  async bucketInfo(bucket: string) {
    return await (await this.#streams()).info(`KV_${bucket}`);
  }

  /** As `nats kv ls` shows them: those that have a value. */
  async keys(bucket: string): Promise<string[]> {
    const names: string[] = [];
    for await (const name of await (await this.#bucket(bucket)).keys()) names.push(name);
    return names;
  }

  async get(bucket: string, key: string): Promise<string | null> {
    return (await (await this.#bucket(bucket)).get(key))?.string() ?? null;
  }

  async put(bucket: string, key: string, value: string): Promise<number> {
    return await (await this.#bucket(bucket)).put(key, value);
  }

  async delete(bucket: string, key: string): Promise<void> {
    await (await this.#bucket(bucket)).delete(key);
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  async #streams() {
    return (await jetstreamManager(this.#connection)).streams;
  }

  #bucket(bucket: string) {
    return new Kvm(this.#connection).open(bucket);
  }
}
