/**
 * NATS JetStream as a lease store: a key-value bucket whose revisions are the versions. All requests of a
 * batch are in flight at once. Records never expire in the bucket: a tombstone keeps the fence.
 *
 * The time in replies is the server's: see clock.ts for how it is learned. What happens when the bucket
 * loses data is written in lineage.ts and docs/stores/nats.md.
 */
import type { LeaseKey } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import type {
  ApplyReply,
  ConditionalWrite,
  LeaseStore,
  ListPage,
  ListQuery,
  ReadReply,
  StoreCapabilities,
  StoreEvent,
  StoreWatch,
  WatchScope,
} from "../../store/index.ts";
import { NatsCalls } from "./calls.ts";
import type { NatsConnection } from "./connection.ts";
import { NatsDataSet } from "./data-set.ts";
import { NatsLayout } from "./layout.ts";
import { listPage } from "./listing.ts";
import { NatsNews } from "./news.ts";
import type { NatsSettings } from "./options.ts";
import { readRecords } from "./reading.ts";
import { applyWrites } from "./writing.ts";

const MAX_BATCH = 128;

export interface NatsStoreParts {
  readonly env: Env;
  readonly connection: NatsConnection;
  readonly settings: NatsSettings;
}

export class NatsStore implements LeaseStore {
  readonly name = "nats";
  readonly capabilities: StoreCapabilities;
  readonly #connection: NatsConnection;
  readonly #calls: NatsCalls;
  readonly #news: NatsNews;

  private constructor({ env, connection, settings }: NatsStoreParts, data: NatsDataSet) {
    this.#connection = connection;
    this.#calls = new NatsCalls(env, data, connection);
    this.#news = new NatsNews({ env, connection, data });
    data.onNewBeginning(() => this.#news.restart());
    this.capabilities = Object.freeze({
      // The server does not tell how often it syncs, and by default it does so every two minutes.
      durable: settings.durable ?? data.bucket?.replicated === true,
      clock: "reply",
      clockGranularityMs: 1,
      watch: true,
      conditionalDelete: true,
      maxBatch: MAX_BATCH,
      // The server works on one call while the client prepares the next.
      maxConcurrentCalls: 2,
    });
  }

  static async open(parts: NatsStoreParts): Promise<NatsStore> {
    const { env, connection, settings } = parts;
    const { replicas, acceptAfterMs } = settings;
    const layout = new NatsLayout(settings.bucket);
    const data = new NatsDataSet({ env, connection, layout, replicas, acceptAfterMs });
    await data.join();
    return new NatsStore(parts, data);
  }

  read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    return readRecords(this.#calls, keys);
  }

  apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    return applyWrites(this.#calls, writes);
  }

  list(query: ListQuery): Promise<ListPage> {
    return listPage(query, this.#calls);
  }

  watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    return this.#news.watch(scope, listener);
  }

  /**
   * Goes on after the bucket lost data: with what is there now, and with fences above all that were handed
   * out before. Call it when no holder of a lost lease can believe in it any more, or must not matter.
   */
  acceptDataLoss(): Promise<void> {
    return this.#calls.data.acceptLoss();
  }

  async close(): Promise<void> {
    this.#news.close();
    this.#connection.close();
  }
}
