/** How a page is chosen from records in order of name, for stores that filter on the client's side. */
import { isReservedName, type LeaseRecord } from "../core/index.ts";
import type { ListQuery } from "./contract.ts";

export const MAX_LIST_LIMIT = 1_000;

/** Whether a name belongs to the query at all, before its record is read. */
export function nameIsListed(query: ListQuery, name: string): boolean {
  if (!name.startsWith(query.prefix)) return false;
  return !isReservedName(name) || query.prefix.startsWith("$");
}

export function recordIsListed(query: ListQuery, record: LeaseRecord): boolean {
  if (query.holder !== undefined && record.holder !== query.holder) return false;
  return query.state === undefined || record.state === query.state;
}
