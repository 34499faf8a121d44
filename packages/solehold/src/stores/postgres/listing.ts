/** Pages of records in order of name, filtered and cut by the database. */
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import type { ListPage, ListQuery } from "../../store/index.ts";
import { MAX_LIST_LIMIT } from "../../store/index.ts";
import { databaseState } from "./columns.ts";
import type { SqlDriver } from "./driver.ts";
import { storedFrom, timedReplyFrom } from "./replies.ts";
import { HOLDER_COLLATION } from "./schema.ts";
import { SEPARATOR_SQL, upperBound } from "./sql-text.ts";
import { NOW_US, rowText, statement } from "./statements.ts";

export async function listPage(driver: SqlDriver, table: string, query: ListQuery): Promise<ListPage> {
  const limit = Math.min(query.limit, MAX_LIST_LIMIT);
  const { conditions, values, name } = selectionOf(query);
  // One more than asked for tells whether there is a next page. The join keeps the time when nothing is found.
  const page = `select t.work_order_id, ${rowText("t")} as row from ${table} t where ${conditions.join(" and ")} order by ${name} limit ${limit + 1}`;
  const rows = await driver.query(
    statement(
      `select concat_ws(${SEPARATOR_SQL}, (select ${NOW_US}), p.row), p.work_order_id from (select) one left join lateral (${page}) p on true order by p.work_order_id`,
    ),
    values,
  );

  const records: LeaseRecord[] = [];
  const corrupt: { key: LeaseKey; version: string; detail: string }[] = [];
  let last: string | null = null;
  for (const row of rows.slice(0, limit)) {
    const found = row[1];
    if (typeof found !== "string") continue;
    last = found;
    const key = { tenant: query.tenant, name: found };
    const stored = storedFrom(timedReplyFrom(row).rest, key);
    if (stored.kind === "found") records.push(stored.record);
    if (stored.kind === "corrupt") corrupt.push({ key, version: stored.version, detail: stored.detail });
  }
  return {
    storeTimeMs: timedReplyFrom(rows[0]).timeMs,
    records,
    corrupt,
    next: rows.length > limit ? last : null,
  };
}

interface Selection {
  readonly conditions: string[];
  readonly values: string[];
  /** The name as the index that fits keeps it. */
  readonly name: string;
}

/** Only the conditions that are asked for, so that the planner sees which index fits. */
function selectionOf(query: ListQuery): Selection {
  const name = query.holder === undefined ? "t.work_order_id" : `t.work_order_id ${HOLDER_COLLATION}`;
  const conditions: string[] = [];
  const values: string[] = [];
  const where = (condition: string, value: string): void => {
    values.push(value);
    conditions.push(`${condition} $${values.length}`);
  };
  where("t.tenant_id =", query.tenant);
  const upper = upperBound(query.prefix);
  if (query.prefix !== "") where(`${name} >=`, query.prefix);
  if (upper !== null) where(`${name} <`, upper);
  if (query.after !== undefined) where(`${name} >`, query.after);
  if (query.holder !== undefined) where("t.lease_owner_id =", query.holder);
  if (query.state !== undefined) where("t.lease_state =", databaseState(query.state));
  if (!query.prefix.startsWith("$")) conditions.push("not starts_with(t.work_order_id, '$')");
  return { conditions, values, name };
}
