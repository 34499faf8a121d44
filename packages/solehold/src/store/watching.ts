/** Watching, for stores that can announce changes. A watch event is a hint to look: late, doubled or out of order. */
import type { LeaseKey } from "../core/index.ts";
import type { StoredRecord } from "./contract.ts";

export type StoreEvent =
  | {
      readonly kind: "changed";
      readonly key: LeaseKey;
      /** What a read would have shown right after the change; null when the event does not carry it. */
      readonly stored: StoredRecord | null;
    }
  /** Events may be missing: listeners that depend on them have to read. */
  | { readonly kind: "reset" };

export type WatchListener = (event: StoreEvent) => void;

/** All names of a tenant that begin with `prefix`, or with `tenant: null` those of all tenants. */
export interface WatchScope {
  readonly tenant: string | null;
  readonly prefix: string;
}

export interface StoreWatch {
  close(): Promise<void>;
}

export interface WatchableStore {
  /** Resolves once every later change will be announced. Present exactly when capabilities.watch is true. */
  watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch>;
}

export function isInScope(scope: WatchScope, key: LeaseKey): boolean {
  return (scope.tenant === null || scope.tenant === key.tenant) && key.name.startsWith(scope.prefix);
}
