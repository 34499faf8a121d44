/**
 * NATS JetStream as a lease store: a key-value bucket whose revisions are the versions. All requests of a call are in
 * flight at once, and each is sent once. Records never expire in the bucket: a tombstone keeps the fence.
 *
 * The store has no clock (`clock: "none"`): JetStream shows a time only with what it stores, so a read with the time
 * would have to write. Leases end for others by observation. docs/stores/nats.md argues it.
 */
import type { LeaseKey } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import type * as contract from "../../store/index.ts";
import { NatsCalls } from "./calls.ts";
import type { NatsPackages } from "./client.ts";
import { listPage } from "./listing.ts";
import type { NatsSettings } from "./options.ts";
import { readRecords } from "./reading.ts";
import { NatsWatching } from "./watching.ts";
import { applyWrites } from "./writing.ts";

export class NatsStore implements contract.LeaseStore {
  readonly name = "nats";
  readonly capabilities: contract.StoreCapabilities;
  readonly #calls: NatsCalls;
  readonly #watching: NatsWatching;

  private constructor(env: Env, calls: NatsCalls, durable: boolean) {
    this.#calls = calls;
    this.#watching = new NatsWatching(env, calls);
    this.capabilities = Object.freeze({
      durable,
      clock: "none",
      clockGranularityMs: 1,
      clockSkewMs: 0,
      watch: true,
      conditionalDelete: true,
      maxBatch: 128,
      // The server works on one call while the client prepares the next.
      maxConcurrentCalls: 2,
    });
  }

  /** The first attempt is the only one: a wrong address is an error at once. */
  static async open(env: Env, packages: NatsPackages, settings: NatsSettings): Promise<NatsStore> {
    const calls = new NatsCalls(env, packages, settings);
    try {
      const { storage } = await calls.call("not-applied", async ({ data }) => data.info.config);
      const durable = settings.syncInterval === "always" && storage === "file";
      return new NatsStore(env, calls, durable);
    } catch (error) {
      await calls.close();
      throw error;
    }
  }

  read(keys: readonly LeaseKey[]): Promise<contract.ReadReply> {
    return this.#calls.call("not-applied", (session) => readRecords(session, keys));
  }

  async apply(writes: readonly contract.ConditionalWrite[]): Promise<contract.ApplyReply> {
    const results = await this.#calls.call("unknown", (session) => applyWrites(session, writes));
    return { storeTimeMs: null, results };
  }

  list(query: contract.ListQuery): Promise<contract.ListPage> {
    return this.#calls.call("not-applied", (session) => listPage(session, query));
  }

  watch(scope: contract.WatchScope, listener: contract.WatchListener): Promise<contract.StoreWatch> {
    return this.#watching.watch(scope, listener);
  }

  async close(): Promise<void> {
    await this.#watching.close();
    await this.#calls.close();
  }
}
