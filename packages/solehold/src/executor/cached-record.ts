import { equalInConstantTime, type LeaseRecord, type LeaseSnapshot, recordFence } from "../core/index.ts";
import type { StoredRecord } from "../store/index.ts";

/** What a decision will be based on. */
export interface SnapshotSource extends LeaseSnapshot {
  readonly stored: StoredRecord;
  /** The receipt of the first reply that showed this version, on the monotonic clock; null for no record. */
  readonly sinceMs: number | null;
  /** The call that brought it; null for an optimistic snapshot, which must not lead to an answer. */
  readonly callNumber: number | null;
}

/**
 * One key's record as it was last seen. Mutable on purpose: a new object for every write would promote one object per key
 * to the old generation of the garbage collector.
 */
export class CachedRecord {
  /** Null when nothing is remembered. */
  record: LeaseRecord | null = null;
  version = "";
  /** The receipt of the first reply that showed this version, on the monotonic clock. */
  sinceMs = 0;
  /** The highest that the store's own answers showed. */
  highestFence = 0n;
  /** Calls up to this number were sent before that fence was seen: their replies may be older. */
  seenAtCall = 0;
  /** What hashes to the record's token hash, while this process was the last to write a lease that is held. */
  token: string | null = null;
  /** When the store was first seen to show less than this, on the monotonic clock; null while it does not. */
  lostAtMs: number | null = null;
  #isWorthTrying = false;

  /**
   * The store's own answer showed this, when calls up to `lastCall` had been sent. With null a watch event did, which may be
   * late: how high fences have grown is learned from the store's own answers alone. A fence below the highest means that
   * the store lost writes: such a record is never the base of an optimistic write.
   */
  keep(record: LeaseRecord, version: string, receivedMs: number, lastCall: number | null): void {
    const fence = recordFence(record);
    const isNew = this.record === null;
    if (lastCall !== null && (isNew || fence > this.highestFence)) {
      this.highestFence = fence;
      this.seenAtCall = lastCall;
      this.lostAtMs = null;
    }
    if (isNew || this.version !== version) this.sinceMs = receivedMs;
    this.record = record;
    this.version = version;
    this.token = null;
    this.#isWorthTrying = fence >= this.highestFence;
  }

  /** From here on the store's own answers count, as if nothing had been seen before. */
  forget(): void {
    this.record = null;
    this.lostAtMs = null;
  }

  /** The base of a write without a read before it; null where reading first is better. */
  optimisticSnapshot(): SnapshotSource | null {
    const { record, version, sinceMs } = this;
    if (record === null || !this.#isWorthTrying) return null;
    const stored: StoredRecord = { kind: "found", record, version };
    return { record, floor: 0n, stored, sinceMs, callNumber: null };
  }

  /** The token's hash, if it is that of the lease that is held: owners come back, and hashing is slower than deciding. */
  hashOf(token: string): string | null {
    const { token: known, record } = this;
    return known !== null && equalInConstantTime(known, token) ? (record?.tokenHash ?? null) : null;
  }
}
