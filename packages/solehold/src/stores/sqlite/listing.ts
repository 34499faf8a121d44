/** One page of a tenant's records, in the order of their names' UTF-8 bytes, read in parts and no further than it needs. */
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import {
  type ListPage,
  type ListQuery,
  nameIsListed,
  recordIsListed,
  type StoredRecord,
} from "../../store/index.ts";
import type { ListedRow } from "./protocol.ts";

/** About a millisecond's worth of decoding. */
const ROWS_AT_ONCE = 500;

export interface ListingParts {
  /** Rows of the tenant whose names begin with the prefix and come after a name. */
  readonly rowsAfter: (after: string, limit: number) => Promise<readonly ListedRow[]>;
  readonly decode: (key: LeaseKey, row: ListedRow) => StoredRecord;
}

export async function listPage(
  query: ListQuery,
  { rowsAfter, decode }: ListingParts,
): Promise<Omit<ListPage, "storeTimeMs">> {
  const records: LeaseRecord[] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  let after = query.after ?? "";
  let lastListed: string | null = null;
  for (;;) {
    const rows = await rowsAfter(after, ROWS_AT_ONCE);
    for (const row of rows) {
      after = row.name;
      if (!nameIsListed(query, row.name)) continue;
      const key = { tenant: query.tenant, name: row.name };
      const stored = decode(key, row);
      if (stored.kind === "found" && !recordIsListed(query, stored.record)) continue;
      // One more than fits: there is another page.
      if (records.length + corrupt.length === query.limit) return { records, corrupt, next: lastListed };
      lastListed = row.name;
      if (stored.kind === "found") records.push(stored.record);
      if (stored.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
    }
    if (rows.length < ROWS_AT_ONCE) return { records, corrupt, next: null };
  }
}
