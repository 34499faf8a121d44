/**
 * The contract between Solehold and a store: versioned reads and conditional writes. Everything else
 * (who may hold what, for how long) is decided above, in `core`; a store never judges a lease.
 *
 * A store must be linearizable per key: a conditional write takes effect only if the version it names is
 * the current one, atomically, and a read that starts after a write was acknowledged sees it. A backend
 * that cannot compare and swap cannot implement `apply`, and so cannot be a LeaseStore.
 *
 * What not every backend can do is optional, in files of its own: listing.ts, watching.ts.
 */
import type { LeaseKey, LeaseRecord } from "../core/index.ts";
import type { StoreCapabilities } from "./capabilities.ts";
import type { ListableStore } from "./listing.ts";
import type { WatchableStore } from "./watching.ts";

/** What a store knows about one key. A corrupt value is reported with its version, so that it can be repaired. */
export type StoredRecord =
  | { readonly kind: "found"; readonly record: LeaseRecord; readonly version: string }
  | { readonly kind: "absent" }
  | { readonly kind: "corrupt"; readonly version: string; readonly detail: string };

export const ABSENT: StoredRecord = Object.freeze({ kind: "absent" });

export interface StoreReply {
  /** The store's clock while it answered; null when it has none. */
  readonly storeTimeMs: number | null;
  /**
   * When another server with another clock last took over this data (failover, restore), on the clock that
   * answers now. Absent or null when the store has never seen that happen.
   */
  readonly serverChangedAtMs?: number | null;
}

export interface ReadReply extends StoreReply {
  /** One per key, in the order asked. */
  readonly records: readonly StoredRecord[];
  /**
   * For stores without a clock: a counter that grows with every write to the store, such as etcd's revision. A key
   * without a record starts above it, so that a fence is not handed out twice after a deletion.
   */
  readonly revision?: bigint;
}

export interface ConditionalWrite {
  readonly key: LeaseKey;
  /** The version that must still be current; null when the key must be absent. */
  readonly expected: string | null;
  /** The record to write; null to delete. */
  readonly next: LeaseRecord | null;
}

export type WriteResult =
  /** It is done, durably if the store is durable. `version` names the new record; null after a delete. */
  | { readonly kind: "applied"; readonly version: string | null }
  /** It was not done and never will be: another version is current. */
  | { readonly kind: "conflict"; readonly current: StoredRecord }
  /** Nobody knows: it may have been done, or may still be done later. */
  | { readonly kind: "unknown"; readonly cause: Error };

export interface ApplyReply extends StoreReply {
  /** One per write, in the order given. */
  readonly results: readonly WriteResult[];
}

/** For stores whose clock is "exact". */
export interface ClockedStore {
  /** The store's clock, read now. Present exactly when capabilities.clock is "exact". */
  now(): number;
}

export interface LeaseStore extends Partial<ClockedStore>, Partial<ListableStore>, Partial<WatchableStore> {
  /** For messages and metrics: "memory", "embedded", "redis". */
  readonly name: string;
  readonly capabilities: StoreCapabilities;
  /** Rejects with a StoreError when it could not be read. `keys` are distinct. */
  read(keys: readonly LeaseKey[]): Promise<ReadReply>;
  /**
   * Independent conditional writes: each succeeds or fails on its own. `writes` have distinct keys.
   * Rejects with a StoreError that says whether the writes may have happened.
   */
  apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply>;
  close(): Promise<void>;
}

/** A store with all that is optional, but for a clock of its own. */
export type FullStore = LeaseStore & ListableStore & WatchableStore;
