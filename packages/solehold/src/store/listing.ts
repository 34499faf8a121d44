/** Listing, for stores that can enumerate their keys. */
import { isReservedName, type LeaseKey, type LeaseRecord, type LeaseState } from "../core/index.ts";

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
  /**
   * True where the page was read from an index that lags behind: it may miss recent writes, and the names are in the
   * order of that index. Sooner or later it shows every write.
   */
  readonly stale?: boolean;
}

export const MAX_LIST_LIMIT = 1_000;

export interface ListableStore {
  list(query: ListQuery): Promise<ListPage>;
}

/** Whether a name belongs to the query at all, before its record is read. */
export function nameIsListed(query: ListQuery, name: string): boolean {
  if (!name.startsWith(query.prefix)) return false;
  return !isReservedName(name) || query.prefix.startsWith("$");
}

export function recordIsListed(query: ListQuery, record: LeaseRecord): boolean {
  if (query.holder !== undefined && record.holder !== query.holder) return false;
  return query.state === undefined || record.state === query.state;
}

/** The pages of a listing, one after another. */
export async function* pagesOf<Page extends { readonly next: string | null }>(
  list: (query: ListQuery) => Promise<Page>,
  query: ListQuery,
): AsyncGenerator<Page, void> {
  for (let after = query.after; ; ) {
    const page = await list(after === undefined ? query : { ...query, after });
    yield page;
    if (page.next === null) return;
    after = page.next;
  }
}
