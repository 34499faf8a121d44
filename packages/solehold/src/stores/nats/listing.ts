/**
 * Pages in order of name. The server names all subjects of a tenant, or of the folder that the prefix names, and the
 * records of one page are then read: a page costs what there are names, so large pages are worth it.
 */
import type { LeaseKey } from "../../core/index.ts";
import { ABSENT, type ListPage, type ListQuery, nameIsListed } from "../../store/index.ts";
import { listRecords } from "../../store/paging.ts";
import { readRecords } from "./reading.ts";
import type { NatsSession } from "./session.ts";

/** How many records are read at a time. */
const STEP = 250;

export async function listPage(session: NatsSession, query: ListQuery): Promise<ListPage> {
  const keys = await keysAfter(session, query);
  const page = await listRecords(query, async ({ after, limit }) => {
    const rest = after === null ? keys : keys.filter(({ name }) => name > after.name);
    const part = rest.slice(0, Math.min(limit, STEP));
    const { records } = await readRecords(session, part);
    const items = part.map((key, index) => ({ key, stored: records[index] ?? ABSENT }));
    return { items, next: rest.length > part.length ? (part.at(-1) ?? null) : null };
  });
  return { storeTimeMs: null, ...page };
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
