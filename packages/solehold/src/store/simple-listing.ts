/** Listings over a backend's pages: a page of records with its filters, or all there is in a scope. */
import { keyId, type LeaseKey } from "../core/index.ts";
import { type ListPage, type ListQuery, MAX_LIST_LIMIT, nameIsListed, recordIsListed } from "./listing.ts";
import type { Snapshot } from "./polling-watch.ts";
import type { BackendReply, ListRange, ListReply } from "./simple-backend.ts";
import { storedFromText } from "./stored-text.ts";
import type { WatchScope } from "./watching.ts";

export type FetchPage = (range: ListRange) => Promise<ListReply>;

export interface Listed {
  readonly page: Omit<ListPage, "storeTimeMs">;
  readonly replies: readonly BackendReply[];
}

/** Asks for as many pages as it takes to fill one, or to reach the end. */
export async function listRecords(query: ListQuery, fetch: FetchPage): Promise<Listed> {
  const { tenant, prefix } = query;
  const limit = Math.min(query.limit, MAX_LIST_LIMIT);
  const records: ListPage["records"][number][] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  const replies: ListReply[] = [];
  const pageUpTo = (next: string | null): Listed => {
    const stale = replies.some((reply) => reply.stale === true);
    return { page: { records, corrupt, next, ...(stale && { stale }) }, replies };
  };
  const isFiltered = query.holder !== undefined || query.state !== undefined;
  const range = { tenant, prefix, limit: isFiltered ? MAX_LIST_LIMIT : limit };
  const after = query.after === undefined ? null : { tenant, name: query.after };
  for await (const reply of pages(fetch, range, after)) {
    replies.push(reply);
    for (const [index, { key, text, version }] of reply.items.entries()) {
      if (!nameIsListed(query, key.name)) continue;
      const stored = storedFromText(key, text, version);
      if (stored.kind === "corrupt") corrupt.push({ key, version, detail: stored.detail });
      else if (stored.kind === "found" && recordIsListed(query, stored.record)) records.push(stored.record);
      const isLast = index === reply.items.length - 1 && reply.next === null;
      if (records.length + corrupt.length === limit && !isLast) return pageUpTo(key.name);
    }
  }
  return pageUpTo(null);
}

export async function lookAt(scope: WatchScope, fetch: FetchPage): Promise<Snapshot> {
  const snapshot: Snapshot = new Map();
  for await (const { items, stale } of pages(fetch, { ...scope, limit: MAX_LIST_LIMIT }, null)) {
    for (const { key, text, version } of items) {
      const stored = stale ? null : storedFromText(key, text, version);
      snapshot.set(keyId(key), { key, version, stored });
    }
  }
  return snapshot;
}

async function* pages(
  fetch: FetchPage,
  range: Omit<ListRange, "after">,
  from: LeaseKey | null,
): AsyncGenerator<ListReply, void> {
  for (let after = from; ; ) {
    const reply = await fetch({ ...range, after });
    yield reply;
    if (reply.next === null) return;
    after = reply.next;
  }
}
