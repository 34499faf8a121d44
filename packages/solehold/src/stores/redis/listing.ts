/** Pages in order of name, from the index; the records are read in a second step. */
import { keyId, type LeaseRecord } from "../../core/index.ts";
import type { ListPage, ListQuery } from "../../store/index.ts";
import { nameIsListed, recordIsListed } from "../../store/index.ts";
import { readRecords } from "./access.ts";
import type { RedisDataSet } from "./data-set.ts";
import { keyOfMember } from "./layout.ts";
import { RANGE } from "./scripts.ts";

/** No byte of UTF-8 is this large: it sorts after every name with the same beginning. */
const AFTER_ALL = Buffer.from([0xff]);
/** How many names are looked at for one page at a time when a filter hides most of them. */
const MIN_STEP = 100;
const MAX_STEP = 1_000;

type CorruptEntry = ListPage["corrupt"][number];

export async function listPage(query: ListQuery, data: RedisDataSet): Promise<ListPage> {
  const records: LeaseRecord[] = [];
  const corrupt: CorruptEntry[] = [];
  // Damage that was met after the last record of this page: it belongs to the next one, if there is one.
  let beyond: CorruptEntry[] = [];
  const step = Math.min(Math.max(query.limit + 1, MIN_STEP), MAX_STEP);
  let after = query.after ?? null;
  for (;;) {
    const names = await namesAfter(query, after, step, data);
    const keys = names
      .filter((name) => nameIsListed(query, name))
      .map((name) => ({ tenant: query.tenant, name }));
    const reply = await readRecords(data, keys);
    for (const [index, key] of keys.entries()) {
      const stored = reply.records[index];
      if (stored?.kind === "corrupt") {
        beyond.push({ key, version: stored.version, detail: stored.detail });
      } else if (stored?.kind === "found" && recordIsListed(query, stored.record)) {
        if (records.length === query.limit) {
          const next = records.at(-1)?.key.name ?? null;
          return { storeTimeMs: reply.storeTimeMs, records, corrupt, next };
        }
        records.push(stored.record);
        corrupt.push(...beyond);
        beyond = [];
      }
    }
    if (names.length < step) {
      corrupt.push(...beyond);
      return { storeTimeMs: reply.storeTimeMs, records, corrupt, next: null };
    }
    after = names.at(-1) ?? null;
  }
}

async function namesAfter(
  query: ListQuery,
  after: string | null,
  count: number,
  data: RedisDataSet,
): Promise<string[]> {
  const { tenant, prefix } = query;
  const from = keyId({ tenant, name: prefix });
  const first = after === null ? `[${from}` : `(${keyId({ tenant, name: after })}`;
  const last = Buffer.concat([Buffer.from(`(${from}`), AFTER_ALL]);
  const args = [first, last, String(count)];
  const { items } = await data.run(RANGE, [data.layout.indexKey], args, "not-applied");
  return items.flatMap((member) => keyOfMember(String(member))?.name ?? []);
}
