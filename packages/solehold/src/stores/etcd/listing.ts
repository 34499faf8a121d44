/** Pages in order of name: a range of keys, read piece by piece until the page is full. */
import type { LeaseRecord } from "../../core/index.ts";
import type { ListPage, ListQuery } from "../../store/index.ts";
import { MAX_LIST_LIMIT, nameIsListed, recordIsListed } from "../../store/index.ts";
import type { Access } from "./access.ts";
import { RANGE_PATH } from "./calls.ts";
import { keyAfter, storedFrom } from "./layout.ts";
import { decodeRange, encodeRange } from "./messages.ts";

/** At least so many records are looked at in one request, as a filter may hide most of them. */
const MIN_STEP = 100;

export async function listPage({ calls, layout }: Access, query: ListQuery): Promise<ListPage> {
  const limit = Math.min(query.limit, MAX_LIST_LIMIT);
  const step = Math.max(limit + 1, MIN_STEP);
  const records: LeaseRecord[] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  let last: string | null = null;
  let range = query.after === undefined ? layout.rangeOf(query) : layout.rangeAfter(query, query.after);
  for (;;) {
    const request = encodeRange({ ...range, limit: step });
    const reply = await calls.call({ path: RANGE_PATH, decode: decodeRange }, request, "not-applied");
    for (const pair of reply.pairs) {
      const key = layout.keyOf(pair.key);
      if (key === null || !nameIsListed(query, key.name)) continue;
      const stored = storedFrom(key, pair);
      if (stored.kind === "found" && !recordIsListed(query, stored.record)) continue;
      // One more than fits shows that there is a next page.
      if (records.length + corrupt.length === limit)
        return { storeTimeMs: null, records, corrupt, next: last };
      if (stored.kind === "found") records.push(stored.record);
      if (stored.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
      last = key.name;
    }
    const end = reply.pairs.at(-1);
    if (!reply.more || end === undefined) return { storeTimeMs: null, records, corrupt, next: null };
    range = { ...range, key: keyAfter(end.key) };
  }
}
