/** Listings over the pages of a backend: a page of records with its filters, or all there is in a scope. */
import { keyId, type LeaseKey } from "../core/index.ts";
import type { StoredRecord } from "./contract.ts";
import { type ListPage, type ListQuery, MAX_LIST_LIMIT, nameIsListed, recordIsListed } from "./listing.ts";
import type { Snapshot } from "./polling.ts";
import type { ListRange } from "./simple-backend.ts";
import type { WatchScope } from "./watching.ts";

export interface StoredPage {
  readonly items: readonly { readonly key: LeaseKey; readonly stored: StoredRecord }[];
  /** Where the next page begins; null at the end. */
  readonly next: LeaseKey | null;
  readonly stale?: boolean | undefined;
}

/** The first `limit` of what was found in order of name. One more than that tells that another page follows. */
export function firstPage<Item extends { readonly key: LeaseKey }>(found: readonly Item[], limit: number) {
  const items = found.slice(0, limit);
  return { items, next: found.length > limit ? (items.at(-1)?.key ?? null) : null };
}

export type FetchPage = (range: ListRange) => Promise<StoredPage>;

/** Asks for as many pages as it takes to fill one, or to reach the end. */
export async function listRecords(
  query: ListQuery,
  fetch: FetchPage,
  /** Whether a listing can go on after any name, or only where a page of the backend ended. */
  resumes: "after any name" | "at a cursor" = "after any name",
): Promise<Omit<ListPage, "storeTimeMs">> {
  const { tenant, prefix } = query;
  const limit = Math.min(query.limit, MAX_LIST_LIMIT);
  const records: ListPage["records"][number][] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  let isStale = false;
  const pageUpTo = (next: string | null) => ({ records, corrupt, next, ...(isStale && { stale: true }) });
  const isFiltered = query.holder !== undefined || query.state !== undefined;
  const step = isFiltered && resumes === "after any name" ? MAX_LIST_LIMIT : limit;
  const after = query.after === undefined ? null : { tenant, name: query.after };
  for await (const { items, next, stale } of pages(fetch, { tenant, prefix, limit: step }, after)) {
    isStale ||= stale === true;
    for (const [index, { key, stored }] of items.entries()) {
      if (!nameIsListed(query, key.name)) continue;
      if (stored.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
      else if (stored.kind === "found" && recordIsListed(query, stored.record)) records.push(stored.record);
      const isLast = index === items.length - 1;
      const isFull = records.length + corrupt.length === limit;
      if (isFull && !(isLast && next === null) && resumes === "after any name") return pageUpTo(key.name);
    }
    if (resumes === "at a cursor") return pageUpTo(next?.name ?? null);
  }
  return pageUpTo(null);
}

/** What polling compares: all there is in the scopes. */
export async function lookAt(scopes: readonly WatchScope[], fetch: FetchPage): Promise<Snapshot> {
  const snapshot: Snapshot = new Map();
  for (const scope of scopes) {
    for await (const { items, stale } of pages(fetch, { ...scope, limit: MAX_LIST_LIMIT }, null)) {
      for (const { key, stored } of items) {
        if (stored.kind === "absent") continue;
        snapshot.set(keyId(key), { key, version: stored.version, stored: stale ? null : stored });
      }
    }
  }
  return snapshot;
}

async function* pages(
  fetch: FetchPage,
  range: Omit<ListRange, "after">,
  from: LeaseKey | null,
): AsyncGenerator<StoredPage, void> {
  for (let after = from; ; ) {
    const page = await fetch({ ...range, after });
    yield page;
    if (page.next === null) return;
    after = page.next;
  }
}
