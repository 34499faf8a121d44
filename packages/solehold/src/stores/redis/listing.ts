/** Pages in order of name, from the index; the records are read in a second step. */
import { keyId, type LeaseRecord } from "../../core/index.ts";
import {
  type ListPage,
  type ListQuery,
  MAX_LIST_LIMIT,
  nameIsListed,
  recordIsListed,
} from "../../store/index.ts";
import type { RedisData } from "./data.ts";
import { keyOfMember } from "./layout.ts";
import { readRecords } from "./records.ts";
import { RANGE } from "./scripts.ts";

/** No byte of UTF-8 is this large: it sorts after every name with the same beginning. */
const AFTER_ALL = Buffer.from([0xff]);
/** How many names are looked at for one page at a time, at least, when a filter hides most of them. */
const MIN_STEP = 100;

export async function listPage(query: ListQuery, data: RedisData): Promise<ListPage> {
  const records: LeaseRecord[] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  const step = Math.min(Math.max(query.limit + 1, MIN_STEP), MAX_LIST_LIMIT);
  let after = query.after ?? null;
  for (;;) {
    const names = await namesAfter(query, after, step, data);
    const listed = names.filter((name) => nameIsListed(query, name));
    const keys = listed.map((name) => ({ tenant: query.tenant, name }));
    const { storeTimeMs, records: found } = await readRecords(data, keys);
    for (const [index, key] of keys.entries()) {
      const stored = found[index];
      const isShown = stored?.kind === "found" && recordIsListed(query, stored.record);
      // The page ends before the record that would be too many, so that its damage is listed once.
      if (isShown && records.length === query.limit) return { storeTimeMs, records, corrupt, next: after };
      if (isShown) records.push(stored.record);
      if (stored?.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
      after = key.name;
    }
    if (names.length < step) return { storeTimeMs, records, corrupt, next: null };
    after = names.at(-1) ?? null;
  }
}

async function namesAfter(
  query: ListQuery,
  after: string | null,
  count: number,
  data: RedisData,
): Promise<string[]> {
  const { tenant, prefix } = query;
  const from = keyId({ tenant, name: prefix });
  const first = after === null ? `[${from}` : `(${keyId({ tenant, name: after })}`;
  const last = Buffer.concat([Buffer.from(`(${from}`), AFTER_ALL]);
  const { items } = await data.read(RANGE, [data.layout.indexKey], [first, last, String(count)]);
  return items.flatMap((member) => keyOfMember(String(member))?.name ?? []);
}
