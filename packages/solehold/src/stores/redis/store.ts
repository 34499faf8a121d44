/**
 * Redis or Valkey as a lease store. One script call for a whole batch, on the server's clock. Records never expire in
 * Redis: a released lease stays as a tombstone until it is collected.
 *
 * Durable only as far as the server is, and its replicas are waited for: see acknowledgement.ts. How a loss is noticed
 * is written in data.ts, what it means in docs/stores/redis.md.
 */
import type { LeaseKey } from "../../core/index.ts";
import { randomId } from "../../env/index.ts";
import type * as contract from "../../store/index.ts";
import { Watchers } from "../support/watchers.ts";
import { acknowledgementOf, assertCanWait, type Durability, isDurable } from "./acknowledgement.ts";
import { RedisData } from "./data.ts";
import { eventOf, type RedisLayout } from "./layout.ts";
import type { LinkOptions, RedisLink } from "./link.ts";
import { listPage } from "./listing.ts";
import { applyWrites, readRecords } from "./records.ts";
import { READ } from "./scripts.ts";
import { RedisSubscriber } from "./subscriber.ts";

const CAPABILITIES: Omit<contract.StoreCapabilities, "durable"> = {
  clock: "reply",
  clockGranularityMs: 1,
  clockSkewMs: 0,
  watch: true,
  conditionalDelete: true,
  // Larger calls no longer fit what a socket takes at once, and other users of the server would notice them.
  maxBatch: 128,
  // The server works on one call while the client prepares the next.
  maxConcurrentCalls: 2,
  minBatch: 16,
};
/** 72 random bits. */
const CLIENT_ID_LENGTH = 12;

export class RedisStore implements contract.LeaseStore {
  readonly name = "redis";
  readonly capabilities: contract.StoreCapabilities;
  readonly #data: RedisData;
  readonly #subscriber: RedisSubscriber;
  readonly #watchers = new Watchers();
  readonly #client: string;
  #writes = 0;

  private constructor(
    data: RedisData,
    subscriber: RedisSubscriber,
    client: string,
    capabilities: contract.StoreCapabilities,
  ) {
    this.#data = data;
    this.#subscriber = subscriber;
    this.#client = client;
    this.capabilities = Object.freeze(capabilities);
  }

  static async open(options: LinkOptions, layout: RedisLayout, durability: Durability): Promise<RedisStore> {
    // What is published reaches only those who listen at the primary: a call notices when it is another.
    const look = (): void => void data.readAside(READ, [], []).catch(() => undefined);
    const subscriber = new RedisSubscriber(options, look);
    const acknowledgement = acknowledgementOf(durability, options.timeoutMs);
    const data = new RedisData(options, layout, acknowledgement, () => subscriber.reconnect());
    try {
      const { server, link } = await data.joined();
      assertCanWait(server, durability, options.driver.address);
      const durable = isDurable(server, durability, await syncsEveryWrite(link));
      const client = randomId(options.env).slice(0, CLIENT_ID_LENGTH);
      return new RedisStore(data, subscriber, client, { ...CAPABILITIES, durable });
    } catch (error) {
      await data.close();
      throw error;
    }
  }

  read(keys: readonly LeaseKey[]): Promise<contract.ReadReply> {
    return readRecords(this.#data, keys);
  }

  apply(writes: readonly contract.ConditionalWrite[]): Promise<contract.ApplyReply> {
    return applyWrites(this.#data, writes, () => {
      this.#writes += 1;
      return `${this.#client}.${this.#writes.toString(36)}`;
    });
  }

  list(query: contract.ListQuery): Promise<contract.ListPage> {
    return listPage(query, this.#data);
  }

  async watch(scope: contract.WatchScope, listener: contract.WatchListener): Promise<contract.StoreWatch> {
    const { changedChannel } = this.#data.layout;
    const watch = this.#watchers.add(scope, listener, () => {
      if (this.#watchers.size === 0) this.#subscriber.forget(changedChannel);
    });
    try {
      await this.#subscriber.listen(changedChannel, {
        onMessage: (message) => {
          const event = eventOf(message);
          if (event !== null) this.#watchers.announce(event);
        },
        onGap: () => this.#watchers.announce({ kind: "reset" }),
      });
      return watch;
    } catch (error) {
      await watch.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#watchers.clear();
    await this.#subscriber.close();
    await this.#data.close();
  }
}

async function syncsEveryWrite(link: RedisLink): Promise<"yes" | "no"> {
  try {
    const reply = await link.request((connection) => connection.call("config", ["get", "appendfsync"]));
    return JSON.stringify(reply).includes("always") ? "yes" : "no";
  } catch {
    // Not every user may ask; a store that cannot be shown to be durable is not called durable.
    return "no";
  }
}
