/** Pages in order of name, from the index; the records are read in a second step. */
import { keyId } from "../../core/index.ts";
import { ABSENT, type ListPage, type ListQuery, type ListRange } from "../../store/index.ts";
import { listRecords } from "../../store/paging.ts";
import type { RedisData } from "./data.ts";
import { keyOfMember } from "./layout.ts";
import { readRecords } from "./records.ts";
import { RANGE } from "./scripts.ts";

/** No byte of UTF-8 is this large: it sorts after every name with the same beginning. */
const AFTER_ALL = Buffer.from([0xff]);

export async function listPage(query: ListQuery, data: RedisData): Promise<ListPage> {
  let storeTimeMs: number | null = null;
  const page = await listRecords(query, async (range) => {
    // One more than asked for tells whether there is a next page.
    const members = await membersIn(query.tenant, range, data);
    const keys = members.slice(0, range.limit).flatMap((member) => keyOfMember(member) ?? []);
    const found = await readRecords(data, keys);
    storeTimeMs = found.storeTimeMs;
    const items = keys.map((key, index) => ({ key, stored: found.records[index] ?? ABSENT }));
    return { items, next: members.length > range.limit ? (keys.at(-1) ?? null) : null };
  });
  return { storeTimeMs, ...page };
}

async function membersIn(
  tenant: string,
  { prefix, after, limit }: ListRange,
  data: RedisData,
): Promise<readonly string[]> {
  const from = keyId({ tenant, name: prefix });
  const first = after === null ? `[${from}` : `(${keyId(after)}`;
  const last = Buffer.concat([Buffer.from(`(${from}`), AFTER_ALL]);
  const { items } = await data.read(RANGE, [data.layout.indexKey], [first, last, String(limit + 1)]);
  return items.map(String);
}
