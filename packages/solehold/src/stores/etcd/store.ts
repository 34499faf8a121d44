/**
 * etcd as the store. It promises what the cluster does: a write that was acknowledged is on the disks of a majority, a
 * conditional write is decided by the key's revision, and a read sees every write before it.
 *
 * etcd shows no clock to its clients, so leases end for others by observation: `capabilities.clock` is "none".
 */
import type { LeaseKey } from "../../core/index.ts";
import {
  type ApplyReply,
  type ConditionalWrite,
  type LeaseStore,
  type ListPage,
  type ListQuery,
  type ReadReply,
  type StoreCapabilities,
  StoreError,
  type StoreWatch,
  type WatchListener,
  type WatchScope,
} from "../../store/index.ts";
import { applyWrites, readRecords } from "./access.ts";
import { closedError } from "./failures.ts";
import { listPage } from "./listing.ts";
import { EtcdWatch, type WatchParts } from "./watching.ts";

/** etcd takes 128 operations in a transaction by default; a write inside it counts its three comparisons once more. */
const MAX_BATCH = 125;

export class EtcdStore implements LeaseStore {
  readonly name = "etcd";
  readonly capabilities: StoreCapabilities = Object.freeze({
    durable: true,
    clock: "none",
    clockGranularityMs: 1,
    clockSkewMs: 0,
    watch: true,
    conditionalDelete: true,
    maxBatch: MAX_BATCH,
    // While one batch waits for the disks of the cluster, the next is on its way.
    maxConcurrentCalls: 2,
  });
  readonly #parts: WatchParts;
  readonly #watches = new Set<StoreWatch>();
  #closed = false;

  /** @internal Use `openEtcdStore`. */
  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  async read(keys: readonly LeaseKey[]): Promise<ReadReply> {
    this.#assertUsable(keys.length);
    return await readRecords(this.#parts, keys);
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    this.#assertUsable(writes.length);
    return await applyWrites(this.#parts, writes);
  }

  async list(query: ListQuery): Promise<ListPage> {
    this.#assertUsable(0);
    return await listPage(this.#parts, query);
  }

  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    this.#assertUsable(0);
    const watch = await EtcdWatch.open(this.#parts, scope, listener);
    this.#watches.add(watch);
    const close = async (): Promise<void> => {
      this.#watches.delete(watch);
      await watch.close();
    };
    if (this.#closed) await close();
    return { close };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#watches].map((watch) => watch.close()));
    this.#watches.clear();
    await this.#parts.cluster.close();
  }

  #assertUsable(batch: number): void {
    if (this.#closed) throw closedError();
    if (batch <= MAX_BATCH) return;
    const message = `a call takes at most ${MAX_BATCH} keys, got ${batch}: split it`;
    throw new StoreError("config", message, { outcome: "not-applied" });
  }
}
