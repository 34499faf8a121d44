/**
 * Redis or Valkey as a lease store. One script call for a whole batch, on the server's clock. Records never expire in
 * Redis: a released lease stays as a tombstone until it is collected.
 *
 * Durable only as far as the server is, and its replicas are waited for: see acknowledgement.ts. How a loss is noticed
 * is written in data.ts, what it means in docs/stores/redis.md.
 */
import type { LeaseKey } from "../../core/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  type QueueTicket,
  type ReadReply,
  type StoreCapabilities,
  StoreError,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
} from "../../store/index.ts";
import { Watchers } from "../support/watchers.ts";
import type { Durability } from "./acknowledgement.ts";
import { RedisData } from "./data.ts";
import type { RedisLayout } from "./layout.ts";
import type { LinkOptions } from "./link.ts";
import { listPage } from "./listing.ts";
import { eventOf } from "./messages.ts";
import { RedisQueues } from "./queue.ts";
import { applyWrites, readRecords } from "./records.ts";
import { isAtLeast, type ServerInfo } from "./server-info.ts";
import { RedisSubscriber } from "./subscriber.ts";

/** Beyond this a call no longer fits what a socket takes at once, and other users of the server would notice it. */
const MAX_BATCH = 128;

export class RedisStore implements LeaseStore {
  readonly name = "redis";
  readonly capabilities: StoreCapabilities;
  readonly #data: RedisData;
  readonly #subscriber: RedisSubscriber;
  readonly #queues: RedisQueues;
  readonly #watchers = new Watchers();

  private constructor(
    data: RedisData,
    subscriber: RedisSubscriber,
    queues: RedisQueues,
    durability: "durable" | "lossy",
  ) {
    this.#data = data;
    this.#subscriber = subscriber;
    this.#queues = queues;
    this.capabilities = Object.freeze({
      durable: durability === "durable",
      clock: "reply",
      clockGranularityMs: 1,
      clockSkewMs: 0,
      watch: true,
      conditionalDelete: true,
      maxBatch: MAX_BATCH,
      // The server works on one call while the client prepares the next.
      maxConcurrentCalls: 2,
      minBatch: 16,
    });
  }

  static async open(options: LinkOptions, layout: RedisLayout, durability: Durability): Promise<RedisStore> {
    const subscriber = new RedisSubscriber(options);
    const data = new RedisData(options, layout, () => subscriber.reconnect());
    try {
      const server = await data.server();
      assertCanSync(server, durability, options.driver.address);
      const isDurable = await survivesEverything(data, server, durability);
      const queues = new RedisQueues(options, data, subscriber);
      return new RedisStore(data, subscriber, queues, isDurable ? "durable" : "lossy");
    } catch (error) {
      await data.close();
      throw error;
    }
  }

  read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    return readRecords(this.#data, keys);
  }

  apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    return applyWrites(this.#data, writes);
  }

  list(query: ListQuery): Promise<ListPage> {
    return listPage(query, this.#data);
  }

  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
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

  joinQueue(key: LeaseKey, listener: WatchListener): Promise<QueueTicket> {
    return this.#queues.join(key, listener);
  }

  async close(): Promise<void> {
    this.#watchers.clear();
    this.#queues.close();
    await this.#subscriber.close();
    await this.#data.close();
  }
}

function assertCanSync(server: ServerInfo, { fsync }: Durability, address: string): void {
  if (fsync === "server") return;
  const refuse = (problem: string): never => {
    const message = `Redis at ${address}: fsync "wait" needs ${problem}`;
    throw new StoreError("config", message, { outcome: "not-applied" });
  };
  if (!isAtLeast(server.version, 7, 2)) refuse(`Redis 7.2 or later (WAITAOF), this is ${server.version}`);
  if (!server.appendOnly) refuse("an append-only file: set appendonly yes");
}

/** Whether a crash, and the promotion of any replica that is connected now, leaves every acknowledged write. */
async function survivesEverything(
  data: RedisData,
  server: ServerInfo,
  durability: Durability,
): Promise<boolean> {
  const isSynced = server.appendOnly && (durability.fsync === "wait" || (await syncsEveryWrite(data)));
  return isSynced && server.connectedReplicas <= durability.replicas;
}

async function syncsEveryWrite(data: RedisData): Promise<boolean> {
  try {
    const reply = await data.call("config", ["get", "appendfsync"]);
    return JSON.stringify(reply).includes("always");
  } catch {
    // Not every user may ask; a store that cannot be shown to be durable is not called durable.
    return false;
  }
}
