/** Pages of records in order of name. The database selects, by the text of the value; there is no index for holders. */
import type { LeaseRecord } from "../../core/index.ts";
import { type ListPage, type ListQuery, MAX_LIST_LIMIT } from "../../store/index.ts";
import { storedFromText } from "../support/stored-text.ts";
import type { Calls } from "./calls.ts";
import { lastWithPrefix } from "./names.ts";
import { STAMPED, statement, timeMsOf } from "./statements.ts";

/** Lines of the record's text form, counted from one. */
const HOLDER = "split_part(t.value, E'\\n', 5)";
const STATE = "split_part(t.value, E'\\n', 15)";

export async function listPage(calls: Calls, table: string, query: ListQuery): Promise<ListPage> {
  const limit = Math.min(query.limit, MAX_LIST_LIMIT);
  const { conditions, values } = selectionOf(query);
  // One more than asked for tells whether there is a next page. The join keeps the time when nothing is found.
  const page = `select t.name, t.version, t.value from ${table} t where ${conditions.join(" and ")} order by t.name limit ${limit + 1}`;
  const text = `select ${STAMPED}, p.name, p.version, p.value from (select) one left join (${page}) p on true order by p.name`;
  const rows = await calls.query(statement(text), values);
  const records: LeaseRecord[] = [];
  const corrupt: ListPage["corrupt"][number][] = [];
  let last: string | null = null;
  for (const [, , name, version, value] of rows.slice(0, limit)) {
    if (typeof name !== "string") continue;
    last = name;
    const key = { tenant: query.tenant, name };
    const stored = storedFromText(key, value ?? null, version ?? "");
    if (stored.kind === "found") records.push(stored.record);
    if (stored.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
  }
  return { storeTimeMs: timeMsOf(rows[0]), records, corrupt, next: rows.length > limit ? last : null };
}

/** Only the conditions that are asked for, so that the planner sees the range of the index. */
function selectionOf(query: ListQuery): { readonly conditions: string[]; readonly values: string[] } {
  const conditions: string[] = [];
  const values: string[] = [];
  const where = (condition: string, value: string): void => {
    values.push(value);
    conditions.push(`${condition} $${values.length}`);
  };
  where("t.tenant =", query.tenant);
  if (query.prefix !== "") {
    where("t.name >=", query.prefix);
    where("t.name <=", lastWithPrefix(query.prefix));
  }
  if (query.after !== undefined) where("t.name >", query.after);
  if (query.holder !== undefined) where(`${HOLDER} =`, query.holder);
  if (query.state !== undefined) where(`${STATE} =`, query.state);
  if (!query.prefix.startsWith("$")) conditions.push("not starts_with(t.name, '$')");
  return { conditions, values };
}
