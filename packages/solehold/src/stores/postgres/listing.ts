/** Pages of records in order of name. The database selects, by the text of the value; there is no index for holders. */
import type { LeaseRecord } from "../../core/index.ts";
import { type ListPage, type ListQuery, MAX_LIST_LIMIT, storedFromText } from "../../store/index.ts";
import { lastWithPrefix } from "./names.ts";
import type { StoreContext } from "./options.ts";
import { STAMPED, statement, timeMsOf } from "./statements.ts";

/** Lines of the record's text form, counted from one. */
const HOLDER = "split_part(t.value, E'\\n', 5)";
const STATE = "split_part(t.value, E'\\n', 15)";

export async function listPage({ calls, names }: StoreContext, query: ListQuery): Promise<ListPage> {
  const limit = Math.min(query.limit, MAX_LIST_LIMIT);
  const values: string[] = [];
  // Only the conditions that are asked for, so that the planner sees the range of the index.
  const where = (condition: string, value: string | undefined): string =>
    value === undefined ? "" : ` and ${condition} $${values.push(value)}`;
  const conditions = [
    where("t.tenant =", query.tenant),
    where("t.name >=", query.prefix),
    where("t.name <=", lastWithPrefix(query.prefix)),
    where("t.name >", query.after),
    where(`${HOLDER} =`, query.holder),
    where(`${STATE} =`, query.state),
    query.prefix.startsWith("$") ? "" : " and not starts_with(t.name, '$')",
  ];
  // One more than asked for tells whether there is a next page. The join keeps the time when nothing is found.
  const page = `select t.name, t.version, t.value from ${names.table} t where true${conditions.join("")} order by t.name limit ${limit + 1}`;
  const text = `select ${STAMPED}, p.name, p.version, p.value from (select) one left join (${page}) p on true order by p.name`;
  const rows = await calls.query(statement(text), values);
  const records: LeaseRecord[] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  for (const [, , name = "", version = "", value = ""] of rows.slice(0, limit)) {
    const key = { tenant: query.tenant, name };
    const stored = storedFromText(key, value || null, version);
    if (stored.kind === "found") records.push(stored.record);
    if (stored.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
  }
  const next = rows.length > limit ? (rows[limit - 1]?.[2] ?? null) : null;
  return { storeTimeMs: timeMsOf(rows), records, corrupt, next };
}
