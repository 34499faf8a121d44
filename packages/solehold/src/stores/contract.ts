/**
 * The contract between Solehold and a store: versioned reads and conditional writes. Everything else
 * (who may hold what, for how long) is decided above, in `core`; a store never judges a lease.
 *
 * A store must be linearizable per key: a conditional write takes effect only if the version it names is
 * the current one, atomically, and a read that starts after a write was acknowledged sees it. A backend
 * that cannot compare and swap cannot implement `apply`, and so cannot be a LeaseStore.
 */
import type { LeaseKey, LeaseRecord, LeaseState } from "../core/index.ts";

export interface StoreCapabilities {
  /** Acknowledged writes survive a crash of the store's process and of its machine. */
  readonly durable: boolean;
  /**
   * Where the store's time comes from. "exact": `now()` reads it without I/O. "reply": every reply carries
   * it, but that to writes that were all done may leave it out if one shortly before did not. "none": the
   * store has no clock, and leases end for others only by observation.
   */
  readonly clock: "exact" | "reply" | "none";
  /** The resolution of the time in replies: 1000 for an HTTP Date header. */
  readonly clockGranularityMs: number;
  /** Whether `watch` brings news of other processes' writes. */
  readonly watch: boolean;
  /** Whether a record can be deleted on condition of its version. Without it nothing is collected. */
  readonly conditionalDelete: boolean;
  /** The largest number of keys in one `read` or `apply`. */
  readonly maxBatch: number;
  /** How many calls are worth having in flight at once: 1 where batches beat concurrency. */
  readonly maxConcurrentCalls: number;
  /**
   * Many operations at once are shared out evenly among the calls that may be in flight, so that the store works
   * on one while the answers of another are worked on; but no call gets fewer than this. Default: one call
   * takes all that fit.
   */
  readonly leastShare?: number;
}

/** What a store knows about one key. A corrupt value is reported with its version, so that it can be repaired. */
export type StoredRecord =
  | { readonly kind: "found"; readonly record: LeaseRecord; readonly version: string }
  | { readonly kind: "absent" }
  | { readonly kind: "corrupt"; readonly version: string; readonly detail: string };

export const ABSENT: StoredRecord = Object.freeze({ kind: "absent" });

export interface ReadReply {
  /** The store's clock while it answered; null when it has none. */
  readonly storeTimeMs: number | null;
  /** One per key, in the order asked. A later key is read no earlier than one before it. */
  readonly records: readonly StoredRecord[];
}

export interface ConditionalWrite {
  readonly key: LeaseKey;
  /** The version that must still be current; null when the key must be absent. */
  readonly expected: string | null;
  /** The record to write; null to delete. */
  readonly next: LeaseRecord | null;
  /** The record that `expected` names, where the writer knows it: a store may then send no more than what changes. */
  readonly replaces?: LeaseRecord | null;
  /**
   * To be written in the same step, so that both are done or neither. It was made by a notebook of this store. Where
   * the store cannot keep it for the moment, the record is written without it, and the answer says so.
   */
  readonly aside?: StoreNote | null;
}

/** Text beside a record, as UTF-8. */
export interface StoreNote {
  /** Of two notes about one key the later has the higher place. */
  readonly place: number;
  /** Its bytes, in a page that it shares with others; nobody writes there again. */
  readonly page: Buffer;
  readonly start: number;
  readonly end: number;
}

/** A note that was found when its notebook was opened. */
export interface LeftNote {
  readonly place: number;
  readonly text: string;
}

/**
 * Notes that lie in the store until they are safe elsewhere. One process has a notebook open at a time: its owner
 * sees to that.
 */
export interface Notebook {
  /** From before it was opened, by their places: all that may not have been given back. */
  readonly left: readonly LeftNote[];
  /**
   * To be written with a record; null while too many were not given back. `write` puts at most `mostBytes` into the
   * page from `start` on and returns where they end; if it throws or returns less than `start`, there is no note.
   */
  note(mostBytes: number, write: (page: Buffer, start: number) => number): StoreNote | null;
  /** The note is safe elsewhere, or it does not matter any more whether it was written. */
  giveBack(note: { readonly place: number }): void;
  /** What was given back by now is not `left` when the notebook is opened again. */
  save(): Promise<void>;
}

export type WriteResult =
  /**
   * It is done, durably if the store is durable. `version` names the new record; null after a delete. `aside` says that
   * the write's note was written with it.
   */
  | { readonly kind: "applied"; readonly version: string | null; readonly aside?: "kept" }
  /** It was not done and never will be: another version is current. */
  | { readonly kind: "conflict"; readonly current: StoredRecord }
  /** Nobody knows: it may have been done, or may still be done later. */
  | { readonly kind: "unknown"; readonly cause: Error };

export interface ApplyReply {
  /** As in a ReadReply; null as well where all writes were done and the time was told just now. */
  readonly storeTimeMs: number | null;
  /** One per write, in the order given. */
  readonly results: readonly WriteResult[];
}

export interface ListQuery {
  readonly tenant: string;
  /** Only names that begin with this; empty for all. */
  readonly prefix: string;
  readonly holder?: string;
  readonly state?: LeaseState;
  /** Continue after this cursor of an earlier page. */
  readonly after?: string;
  readonly limit: number;
}

export interface ListPage {
  readonly storeTimeMs: number | null;
  /** Ordered by name. Reserved names are left out unless the prefix begins with "$". */
  readonly records: readonly LeaseRecord[];
  /** Keys whose value cannot be read. */
  readonly corrupt: readonly { readonly key: LeaseKey; readonly version: string; readonly detail: string }[];
  /** Pass as `after` for the next page; null at the end. */
  readonly next: string | null;
}

/** News is a hint to look: it may be late, doubled or out of order. "reset" says that some may be missing. */
export type StoreEvent =
  | {
      readonly kind: "changed";
      readonly key: LeaseKey;
      readonly record: LeaseRecord | null;
      /** Where the record was left out, because its watch wants to know only this. */
      readonly held?: "yes" | "no";
      /** With `held`: a mark of its holder, or of who held it last. It tells holders apart, and no more. */
      readonly by?: string;
      /**
       * With `held`: a mark of the grant that it is about. Of one grant the news that it was given back is the last,
       * in whatever order they arrive.
       */
      readonly grant?: string;
      /** With `held`, where it came with the news: what was written, as a read would have shown it then. */
      readonly stored?: () => StoredRecord | null;
    }
  | { readonly kind: "reset" };

export interface StoreWatch {
  close(): Promise<void>;
}

/** A place in the line that a store keeps for a key. It decides nothing: who is told has to try like everybody. */
export interface StorePlace {
  /**
   * Takes a place at the end, or the one it had before it was told, or makes sure that it still has it. The listener is
   * told at once if nobody holds the key; otherwise when somebody has given it back and it is this one's turn.
   */
  enter(): Promise<void>;
  /** It has the key, or wants it no more: then, if it had been told, the next one is. */
  leave(why: "served" | "gone"): void;
  close(): Promise<void>;
}

export interface LeaseStore {
  /** For messages and metrics: "memory", "embedded", "redis". */
  readonly name: string;
  readonly capabilities: StoreCapabilities;
  /** The store's clock, read now. Present exactly when capabilities.clock is "exact". */
  now?(): number;
  /** Rejects with a StoreError when it could not be read. `keys` are distinct. */
  read(keys: readonly LeaseKey[]): Promise<ReadReply>;
  /**
   * Independent conditional writes: each succeeds or fails on its own. `writes` have distinct keys.
   * Rejects with a StoreError that says whether the writes may have happened.
   */
  apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply>;
  list(query: ListQuery): Promise<ListPage>;
  /** Resolves once every later change will be announced. Present exactly when capabilities.watch is true. */
  watch?(scope: WatchScope, listener: (event: StoreEvent) => void): Promise<StoreWatch>;
  /**
   * For stores that can tell those who wait for a key one after the other, first come, first served, instead of all of
   * them at once: a client's place in the line for it, which is not entered yet. Turns may get lost, like all news.
   */
  standInLine?(key: LeaseKey, listener: (event: StoreEvent) => void): Promise<StorePlace>;
  /** For durable stores that can write a note in the same step as a record. A name has no "/". */
  notebook?(name: string): Promise<Notebook>;
  close(): Promise<void>;
}

/** All names of a tenant that begin with `prefix`, or with `tenant: null` those of all tenants. */
export interface WatchScope {
  readonly tenant: string | null;
  readonly prefix: string;
  /** "holding": whether a key is held is enough, so a store that would have to read the record need not. */
  readonly wants?: "records" | "holding";
}

export function isInScope(scope: WatchScope, key: LeaseKey): boolean {
  return (scope.tenant === null || scope.tenant === key.tenant) && key.name.startsWith(scope.prefix);
}

/** Whether the writes of a failed call can have happened. */
export type FailedOutcome = "not-applied" | "unknown";

export type StoreErrorKind = "unreachable" | "timeout" | "auth" | "config" | "full" | "closed" | "internal";

/** The store could not do its work. The message is one line and says what to do about it. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly kind: StoreErrorKind;
  readonly outcome: FailedOutcome;

  constructor(kind: StoreErrorKind, message: string, options: { outcome: FailedOutcome; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.outcome = options.outcome;
  }
}
