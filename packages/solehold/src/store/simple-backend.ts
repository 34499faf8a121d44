/**
 * What an engine has to offer to become a lease store through `SimpleStore`: one text a key, each with a version that
 * changes with every write and never comes back.
 *
 * A backend does not judge, code, time or repeat anything. Whatever it throws means "nobody knows whether this was
 * written", unless it is a StoreError with the outcome "not-applied". It must not repeat a write, and must switch off
 * the repetitions of its client library: a write that was done the first time would look like a conflict.
 *
 * `signal` aborts when nobody waits for the answer any more (`timeoutMs`): then free what the call holds.
 */
import type { LeaseKey } from "../core/index.ts";
import type { StoreError } from "./errors.ts";
import type { StoreWatch, WatchListener, WatchScope } from "./watching.ts";

export interface SimpleBackend {
  /** The present value. It must show every write that was acknowledged before: no replica that lags, no cache. */
  get(key: LeaseKey, signal: AbortSignal): Promise<GetReply>;
  /** Writes if, and only if, `expected` is still the version, in one atomic step. Null: if there is no value yet. */
  putIf(put: ConditionalPut, signal: AbortSignal): Promise<ConditionalReply>;
  /** Deletes on the same condition. Without it nothing is ever collected, and ended leases stay for ever. */
  deleteIf?(key: LeaseKey, expected: string, signal: AbortSignal): Promise<ConditionalReply>;
  /** Up to `limit` values in order of name. Without it there are no listings, no collection and no polling. */
  list?(range: ListRange, signal: AbortSignal): Promise<ListReply>;
  /**
   * "at a cursor": a listing can only go on where a page ended, and `next` has no name but the backend's own cursor. A
   * page of records is then a page of the backend, however many a filter hides. Default "after any name".
   */
  readonly listResumes?: "after any name" | "at a cursor";
  /** The backend's clock in whole milliseconds, read without I/O. Exactly where `clock` is "exact". */
  now?(): number;
  /** Announces changes in the scope, in its own way; resolves once every later change will be. Without it see `pollMs`. */
  changes?(scope: WatchScope, listener: WatchListener): Promise<StoreWatch>;
  /** Called once, when the store is closed. */
  close?(): Promise<void>;
}

export interface BackendReply {
  /** The backend's clock while it answered, in milliseconds since 1970. In every reply where `clock` is "reply". */
  readonly timeMs?: number;
  /** When another server, with another clock, last took over the data, on the clock that answers now. Default: unknown. */
  readonly serverChangedAtMs?: number | null;
}

export interface StoredValue {
  readonly text: string;
  /** Not empty. */
  readonly version: string;
}

export interface GetReply extends BackendReply {
  /** Null when the key has no value. */
  readonly value: StoredValue | null;
}

export interface ConditionalPut {
  readonly key: LeaseKey;
  readonly expected: string | null;
  readonly text: string;
  /** 22 random characters, for backends that keep the version beside the text. Those that make their own ignore it. */
  readonly newVersion: string;
}

export type ConditionalReply = BackendReply &
  (
    | { readonly kind: "done" /** Of what was written; nothing after a delete. */; readonly version?: string }
    /** Not done. `current` is what is there instead; left out, it is read with `get`. */
    | { readonly kind: "conflict"; readonly current?: StoredValue | null }
    /** The backend answered, and its answer leaves open whether it was done, or will be. */
    | { readonly kind: "unknown"; readonly cause: StoreError }
  );

export interface ListRange {
  /** Null for all tenants; asked for by a polling watch only, which does not mind the order. */
  readonly tenant: string | null;
  /** Plain text that the names begin with; empty for all. */
  readonly prefix: string;
  /** Only keys that come after this one; null from the beginning. */
  readonly after: LeaseKey | null;
  /** 1 to 1,000. A page may have fewer. */
  readonly limit: number;
}

export interface ListReply extends BackendReply {
  readonly items: readonly (StoredValue & { readonly key: LeaseKey })[];
  /** Where the next page begins; null at the end. Usually the last key of `items`. */
  readonly next: LeaseKey | null;
  /** True where the page comes from an index that may lag behind: recent writes may be missing. Default false. */
  readonly stale?: boolean;
}
