import { equalInConstantTime, type LeaseRecord, type LeaseSnapshot, recordFence } from "../core/index.ts";
import type { StoredRecord } from "../stores/index.ts";

/** What a decision will be based on. */
export interface SnapshotSource extends LeaseSnapshot {
  readonly stored: StoredRecord;
  /** The record, if the store itself showed it or took it; null for what was only heard of. */
  readonly confirmed: LeaseRecord | null;
  /** The receipt of the first reply that showed this version, on the monotonic clock; null for no record. */
  readonly sinceMs: number | null;
  /** The call that brought it; null for a guess, which must not lead to an answer. */
  readonly callNumber: number | null;
}

type FoundRecord = Extract<StoredRecord, { kind: "found" }>;

/** What will be tried on the strength of memory alone. Every command makes one, so it stands for what is stored, too. */
class Guess implements SnapshotSource {
  readonly kind = "found";
  readonly floor = 0n;
  readonly callNumber = null;
  readonly record: LeaseRecord;
  readonly version: string;
  readonly confirmed: LeaseRecord | null;
  readonly sinceMs: number;

  constructor(record: LeaseRecord, version: string, confirmed: LeaseRecord | null, sinceMs: number) {
    this.record = record;
    this.version = version;
    this.confirmed = confirmed;
    this.sinceMs = sinceMs;
  }

  get stored(): FoundRecord {
    return this;
  }
}

/**
 * What a process remembers of one key: the record as it was last seen. A command looks its key up once, and finds the way
 * back by this. It is changed in place: what is made anew with every write, and kept, is carried about by the garbage
 * collector.
 */
export class KeyMemory {
  /** Of the map, when this was put there. */
  generation: number;
  #record: LeaseRecord | null = null;
  #version = "";
  #isConfirmed = false;
  #sinceMs = 0;
  /** What hashes to the record's token hash, while this process was the last to write a lease that is held. */
  #token: string | null = null;
  #highestFence = 0n;
  #seenAtCall = 0;
  #isWorthTrying = false;

  constructor(generation: number) {
    this.generation = generation;
  }

  /** Null when nothing is remembered. */
  get record(): LeaseRecord | null {
    return this.#record;
  }

  /** Of the record. */
  get version(): string {
    return this.#version;
  }

  /** The receipt of the first reply that showed this version, on the monotonic clock. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** The highest that the store's own answers showed. */
  get highestFence(): bigint {
    return this.#highestFence;
  }

  /** Calls up to this number were sent before that fence was seen: their replies may be older. */
  get seenAtCall(): number {
    return this.#seenAtCall;
  }

  /** The store's own answer showed this; calls up to `lastCall` have been sent. */
  saw(record: LeaseRecord, version: string, receivedMs: number, lastCall: number): void {
    const fence = recordFence(record);
    if (this.#record === null || fence > this.#highestFence) {
      this.#highestFence = fence;
      this.#seenAtCall = lastCall;
    }
    this.#keep(record, version, receivedMs, fence);
    this.#isConfirmed = true;
  }

  /** News showed this, which may be late: how high fences have grown is learned from the store's own answers alone. */
  heard(record: LeaseRecord, version: string, receivedMs: number): void {
    this.#keep(record, version, receivedMs, recordFence(record));
    this.#isConfirmed = false;
  }

  /** Below the highest fence means that the store lost writes: nothing is tried on such a record without a look. */
  #keep(record: LeaseRecord, version: string, receivedMs: number, fence: bigint): void {
    if (this.#record === null || this.#version !== version) this.#sinceMs = receivedMs;
    this.#record = record;
    this.#version = version;
    this.#token = null;
    this.#isWorthTrying = fence >= this.#highestFence;
  }

  /** This process wrote the lease that is remembered, and was told the token. */
  provenBy(token: string | null): void {
    this.#token = token;
  }

  forget(): void {
    this.#record = null;
  }

  /** Null where it is better to look first. */
  guess(): SnapshotSource | null {
    const record = this.#record;
    if (record === null || !this.#isWorthTrying) return null;
    return new Guess(record, this.#version, this.#isConfirmed ? record : null, this.#sinceMs);
  }

  /** The token's hash, if it is that of the lease that is held: owners come back, and hashing is slower than deciding. */
  hashOf(token: string): string | null {
    const known = this.#token;
    return known !== null && equalInConstantTime(known, token) ? (this.#record?.tokenHash ?? null) : null;
  }
}
