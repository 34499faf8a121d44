/**
 * Changes by polling, for where notifications do not arrive: one statement at an interval, for all watches. It shows the
 * versions of all rows in their scopes and no records: a watcher that needs a changed record reads it. A watch of everything in a
 * large table is better served by LISTEN.
 */
import { keyId } from "../../core/index.ts";
import type { WatchScope } from "../../store/index.ts";
import { Polling, type Snapshot } from "../../store/polling.ts";
import { lastWithPrefix } from "./names.ts";
import type { StoreContext } from "./options.ts";
import { arrayLiteral, statement } from "./statements.ts";

export function pollerOf({ calls, env, names, pollIntervalMs: pollMs }: StoreContext): Polling {
  const inRange = `from unnest($1::text[], $2::text[], $3::text[]) as w(tenant, low, high) join ${names.table} t on t.name >= w.low and t.name <= w.high`;
  // The two halves differ in the index range that they scan.
  const versions = statement(
    `select t.tenant, t.name, t.version ${inRange} and t.tenant = w.tenant union select t.tenant, t.name, t.version ${inRange} and w.tenant is null and t.tenant <> ''`,
  );
  const look = async (scopes: readonly WatchScope[]): Promise<Snapshot> => {
    const column = (value: (scope: WatchScope) => string | null): string => arrayLiteral(scopes.map(value));
    const rows = await calls.query(versions, [
      column(({ tenant }) => tenant),
      column(({ prefix }) => prefix),
      column(({ prefix }) => lastWithPrefix(prefix)),
    ]);
    return new Map(
      rows.map(([tenant = "", name = "", version = ""]) => {
        const key = { tenant, name };
        return [keyId(key), { key, version, stored: null }];
      }),
    );
  };
  return new Polling({ env, pollMs, look });
}
