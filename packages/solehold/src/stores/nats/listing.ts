/**
 * Pages in order of name. The server names all subjects of a tenant, or of the folder that the prefix names, and the
 * records of one page are then read: a page costs what there are names, so large pages are worth it.
 */
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import {
  type ListPage,
  type ListQuery,
  MAX_LIST_LIMIT,
  nameIsListed,
  recordIsListed,
} from "../../store/index.ts";
import { readRecords } from "./reading.ts";
import type { NatsSession } from "./session.ts";

/** How many records are read at a time when a filter hides most of them. */
const MIN_STEP = 100;
const MAX_STEP = 500;

export async function listPage(session: NatsSession, query: ListQuery): Promise<ListPage> {
  const keys = await keysAfter(session, query);
  const limit = Math.min(query.limit, MAX_LIST_LIMIT);
  const records: LeaseRecord[] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  const step = Math.min(Math.max(limit + 1, MIN_STEP), MAX_STEP);
  for (let start = 0; start < keys.length; start += step) {
    const part = keys.slice(start, start + step);
    const reply = await readRecords(session, part);
    for (const [index, key] of part.entries()) {
      const stored = reply.records[index];
      if (stored?.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
      if (stored?.kind !== "found" || !recordIsListed(query, stored.record)) continue;
      const last = records.at(-1)?.key.name ?? "";
      if (records.length < limit) records.push(stored.record);
      else return { storeTimeMs: null, records, corrupt: corrupt.filter(upTo(last)), next: last };
    }
  }
  return { storeTimeMs: null, records, corrupt, next: null };
}

/** Damage that was met after the last record of a page belongs to the next one. */
function upTo(last: string): (entry: ListPage["corrupt"][number]) => boolean {
  return ({ key }) => key.name <= last;
}

async function keysAfter(session: NatsSession, query: ListQuery): Promise<readonly LeaseKey[]> {
  const { layout, dataId } = session;
  const { tenant, prefix, after } = query;
  const { state } = await session.check(layout.recordsOf(dataId, tenant, prefix));
  return Object.keys(state.subjects ?? {})
    .flatMap((subject) => layout.keyOf(dataId, subject) ?? [])
    .filter(({ name }) => nameIsListed(query, name) && (after === undefined || name > after))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}
