/**
 * Redis or Valkey as a lease store. One script call for a whole batch, judged on the server's clock.
 * Records never expire in Redis: a tombstone keeps the fence.
 *
 * Durable only if the server syncs its append-only file on every write. What happens when it loses data
 * is written in lineage.ts and docs/stores/redis.md.
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
  StoredRecord,
  StoreEvent,
  StorePlace,
  StoreWatch,
  WatchScope,
} from "../../store/index.ts";
import { announcedRecord, applyWrites, readRecords } from "./access.ts";
import type { RedisConnection } from "./connection.ts";
import { RedisDataSet } from "./data-set.ts";
import type { RedisDriver } from "./driver.ts";
import { RedisLayout } from "./layout.ts";
import { RedisLines } from "./lines.ts";
import { listPage } from "./listing.ts";
import { RedisNews } from "./news.ts";
import type { RedisSettings } from "./options.ts";

/**
 * Measured: beyond this a call no longer fits what a socket takes at once, and gets slower per write. It
 * also keeps a script below the time at which other users of the server would notice.
 */
const MAX_BATCH = 128;

export interface RedisStoreParts {
  readonly env: Env;
  readonly driver: RedisDriver;
  readonly connection: RedisConnection;
  readonly settings: RedisSettings;
}

export class RedisStore implements LeaseStore {
  readonly name = "redis";
  readonly capabilities: StoreCapabilities;
  readonly #connection: RedisConnection;
  readonly #data: RedisDataSet;
  readonly #news: RedisNews;
  readonly #lines: RedisLines;

  private constructor(parts: RedisStoreParts, data: RedisDataSet, durable: boolean) {
    const { env, driver, connection, settings } = parts;
    this.#connection = connection;
    this.#data = data;
    this.capabilities = Object.freeze({
      durable,
      clock: "reply",
      clockGranularityMs: 1,
      watch: true,
      conditionalDelete: true,
      maxBatch: MAX_BATCH,
      // The server works on one call while the client prepares the next.
      maxConcurrentCalls: 2,
      minBatch: 16,
    });
    const { timeoutMs } = settings;
    const read = (keys: readonly LeaseKey[]): Promise<ReadReply> => readRecords(data, keys);
    const shown = (key: LeaseKey, value: string): StoredRecord | null => announcedRecord(data, key, value);
    const { layout } = data;
    this.#lines = new RedisLines({ env, driver, data, timeoutMs, shown });
    this.#news = new RedisNews({ env, driver, layout, timeoutMs, maxBatch: MAX_BATCH, read, shown });
  }

  static async open(parts: RedisStoreParts): Promise<RedisStore> {
    const { env, connection, settings } = parts;
    const layout = new RedisLayout(settings.prefix);
    const data = new RedisDataSet(env, connection, layout, settings.acceptAfterMs);
    await data.join();
    const durable = data.server?.appendOnly === true && (await syncsEveryWrite(connection));
    return new RedisStore(parts, data, durable);
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

  watch(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch> {
    return this.#news.watch(scope, listener);
  }

  standInLine(key: LeaseKey, listener: (event: StoreEvent) => void): Promise<StorePlace> {
    return this.#lines.stand(key, listener);
  }

  /**
   * Goes on after Redis lost data: with what is there now, and with fences above all that were handed
   * out before. Call it when no holder of a lost lease can believe in it any more, or must not matter.
   */
  async acceptDataLoss(): Promise<void> {
    await this.#data.acceptLoss();
    this.#news.reset();
    this.#lines.reset();
  }

  async close(): Promise<void> {
    this.#news.close();
    this.#lines.close();
    this.#connection.close();
  }
}

async function syncsEveryWrite(connection: RedisConnection): Promise<boolean> {
  try {
    const wire = await connection.ready();
    const reply = await wire.call("CONFIG", ["GET", "appendfsync"]);
    return JSON.stringify(reply).includes("always");
  } catch {
    // Not every user may ask; a store that cannot be shown to be durable is not called durable.
    return false;
  }
}
