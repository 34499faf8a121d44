/**
 * One page of a listing: the leases of some names, read and filtered. A page of a server becomes a page of leases, so
 * it may have fewer than were asked for, or none, before the end.
 */
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import {
  type ListPage,
  type ListQuery,
  nameIsListed,
  recordIsListed,
  type StoredRecord,
} from "../../store/index.ts";
import type { ObjectNames } from "./names.ts";
import type { ConditionalObjects } from "./objects.ts";

/** Leases that are read at a time. */
const WIDTH = 16;

type Read = (key: LeaseKey) => Promise<StoredRecord>;

export async function readListed(
  query: ListQuery,
  names: readonly string[],
  read: Read,
): Promise<Pick<ListPage, "records" | "corrupt">> {
  const records: LeaseRecord[] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  const keys = names
    .filter((name) => nameIsListed(query, name))
    .map((name) => ({ tenant: query.tenant, name }));
  for (let start = 0; start < keys.length; start += WIDTH) {
    const part = keys.slice(start, start + WIDTH);
    const found = await Promise.all(part.map(async (key) => ({ key, stored: await read(key) })));
    for (const { key, stored } of found) {
      if (stored.kind === "found" && recordIsListed(query, stored.record)) records.push(stored.record);
      if (stored.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
    }
  }
  return { records, corrupt };
}

/** In the server's order: by the names as they are written, which is that of the keys unless signs are escaped. */
export async function listObjects(
  objects: ConditionalObjects,
  names: ObjectNames,
  query: ListQuery,
  read: Read,
): Promise<ListPage> {
  const prefix = names.listPrefix(query.tenant, query.prefix);
  const page = await objects.list(prefix, query.after ?? null, query.limit);
  const keyNames = page.names
    .map((object) => names.keyNameOf(query.tenant, object))
    .filter((name) => name !== null);
  return { storeTimeMs: page.dateMs, ...(await readListed(query, keyNames, read)), next: page.next };
}
