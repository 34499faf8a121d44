/**
 * Pages in order of name. The server tells all names of a tenant, or of the folder that the prefix names, and
 * the records of one page are then read: a page costs what there are names, so large pages are worth it.
 */
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import type { ListPage, ListQuery } from "../../store/index.ts";
import { nameIsListed, recordIsListed } from "../../store/index.ts";
import { subjectsIn } from "./bucket.ts";
import type { NatsCalls } from "./calls.ts";
import { readRecords } from "./reading.ts";

/** How many records are read at a time when a filter hides most of them. */
const MIN_STEP = 100;
const MAX_STEP = 500;

export async function listPage(query: ListQuery, calls: NatsCalls): Promise<ListPage> {
  const { keys, storeTimeMs } = await keysAfter(query, calls);
  const records: LeaseRecord[] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  const step = Math.min(Math.max(query.limit + 1, MIN_STEP), MAX_STEP);
  let timeMs = storeTimeMs;
  for (let start = 0; start < keys.length; start += step) {
    const part = keys.slice(start, start + step);
    const reply = await readRecords(calls, part);
    timeMs = reply.storeTimeMs ?? timeMs;
    for (const [index, key] of part.entries()) {
      const stored = reply.records[index];
      if (stored?.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
      if (stored?.kind !== "found" || !recordIsListed(query, stored.record)) continue;
      const last = records.at(-1)?.key.name ?? "";
      if (records.length < query.limit) records.push(stored.record);
      else return { storeTimeMs: timeMs, records, corrupt: corrupt.filter(upTo(last)), next: last };
    }
  }
  return { storeTimeMs: timeMs, records, corrupt, next: null };
}

/** Damage that was met after the last record of a page belongs to the next one. */
function upTo(last: string): (entry: ListPage["corrupt"][number]) => boolean {
  return ({ key }) => key.name <= last;
}

async function keysAfter(
  query: ListQuery,
  calls: NatsCalls,
): Promise<{ readonly keys: readonly LeaseKey[]; readonly storeTimeMs: number }> {
  const { data } = calls;
  const joined = await data.join();
  const { tenant, prefix, after } = query;
  const filter = data.layout.recordsOf(joined.id, tenant, prefix);
  const { value, storeTimeMs } = await calls.send(joined, "not-applied", () =>
    subjectsIn(joined.wire, data.layout, filter),
  );
  const keys = value
    .flatMap((subject) => data.layout.keyOf(joined.id, subject) ?? [])
    .filter(({ name }) => nameIsListed(query, name) && (after === undefined || name > after))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  return { keys, storeTimeMs };
}
