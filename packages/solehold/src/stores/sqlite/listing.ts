/** One page of a tenant's records, in the order of their names' UTF-8 bytes, read in parts and no further than it needs. */
import {
  type ListPage,
  type ListQuery,
  nameIsListed,
  recordIsListed,
  type StoredRecord,
} from "../../store/index.ts";
import type { RowReply } from "./protocol.ts";

/** About a millisecond's worth of decoding. */
const ROWS_AT_ONCE = 500;

/** `rowsAfter` gives rows of the tenant whose names begin with the prefix and come after a name. */
export async function listPage(
  query: ListQuery,
  rowsAfter: (after: string, limit: number) => Promise<readonly RowReply[]>,
  decode: (row: RowReply) => StoredRecord,
): Promise<Omit<ListPage, "storeTimeMs">> {
  const records: ListPage["records"][number][] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  let last: string | null = null;
  for (let after = query.after ?? ""; ; ) {
    const rows = await rowsAfter(after, ROWS_AT_ONCE);
    for (const row of rows) {
      after = row.name;
      const stored = decode(row);
      if (!nameIsListed(query, row.name) || stored.kind === "absent") continue;
      if (stored.kind === "found" && !recordIsListed(query, stored.record)) continue;
      // One more than fits: there is another page.
      if (records.length + corrupt.length === query.limit) return { records, corrupt, next: last };
      last = row.name;
      const key = { tenant: query.tenant, name: row.name };
      if (stored.kind === "found") records.push(stored.record);
      else corrupt.push({ key, version: stored.version, detail: stored.detail });
    }
    if (rows.length < ROWS_AT_ONCE) return { records, corrupt, next: null };
  }
}
