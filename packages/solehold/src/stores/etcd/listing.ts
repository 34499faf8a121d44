/** Pages in order of name: a range of keys, read piece by piece until the page is full. */
import type { LeaseRecord } from "../../core/index.ts";
import {
  type ListPage,
  type ListQuery,
  MAX_LIST_LIMIT,
  nameIsListed,
  recordIsListed,
} from "../../store/index.ts";
import type { Access } from "./access.ts";
import { keyAfter, storedFrom } from "./layout.ts";
import { RANGE } from "./messages.ts";

/** At least so many records are looked at in one request, as a filter may hide most of them. */
const MIN_STEP = 100;

export async function listPage({ cluster, layout }: Access, query: ListQuery): Promise<ListPage> {
  const limit = Math.min(query.limit, MAX_LIST_LIMIT);
  const step = Math.max(limit + 1, MIN_STEP);
  const records: LeaseRecord[] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  let last: string | null = null;
  let range = query.after === undefined ? layout.rangeOf(query) : layout.rangeAfter(query, query.after);
  for (;;) {
    const request = { ...range, limit: step };
    const { kvs, more } = await cluster.call(RANGE, request, "not-applied", (reply) => reply);
    for (const kv of kvs) {
      const key = layout.keyOf(kv.key);
      if (key === null || !nameIsListed(query, key.name)) continue;
      const stored = storedFrom(key, kv);
      if (stored.kind === "found" && !recordIsListed(query, stored.record)) continue;
      // One more than fits shows that there is a next page.
      if (records.length + corrupt.length === limit)
        return { storeTimeMs: null, records, corrupt, next: last };
      if (stored.kind === "found") records.push(stored.record);
      if (stored.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
      last = key.name;
    }
    const end = kvs.at(-1);
    if (!more || end === undefined) return { storeTimeMs: null, records, corrupt, next: null };
    range = { ...range, key: keyAfter(end.key) };
  }
}
