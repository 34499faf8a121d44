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

/** How many records are read at a time. */
const STEP = 250;

export async function listPage(session: NatsSession, query: ListQuery): Promise<ListPage> {
  const keys = await keysAfter(session, query);
  const limit = Math.min(query.limit, MAX_LIST_LIMIT);
  const records: LeaseRecord[] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  const page = { storeTimeMs: null, records };
  for (let start = 0; start < keys.length; start += STEP) {
    const part = keys.slice(start, start + STEP);
    const reply = await readRecords(session, part);
    for (const [index, key] of part.entries()) {
      const stored = reply.records[index];
      if (stored?.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
      if (stored?.kind !== "found" || !recordIsListed(query, stored.record)) continue;
      const last = records.at(-1)?.key.name ?? "";
      if (records.length < limit) records.push(stored.record);
      // Damage that was met after the last record of a page belongs to the next one.
      else return { ...page, corrupt: corrupt.filter((each) => each.key.name <= last), next: last };
    }
  }
  return { ...page, corrupt, next: null };
}

async function keysAfter(session: NatsSession, query: ListQuery): Promise<readonly LeaseKey[]> {
  const { layout, identity } = session.data;
  const { tenant, prefix, after } = query;
  const filter = layout.recordsOf(identity.dataId, tenant, prefix);
  const { state } = await session.check({ subjects_filter: filter });
  return Object.keys(state.subjects ?? {})
    .flatMap((subject) => layout.keyOf(identity.dataId, subject) ?? [])
    .filter(({ name }) => nameIsListed(query, name) && (after === undefined || name > after))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}
