/**
 * Changes by polling, for where notifications do not arrive: one statement at an interval, for all watches.
 *
 * Each row carries the transaction that changed it and the one that inserted it. What was not visible to the snapshot of
 * the last poll, and is now, has changed since: nothing is missed and nothing reported twice, whatever the order of
 * commits. Deleted rows leave no trace, but their number does: rows at the last poll, plus inserted ones, minus rows now.
 * They are reported by a reset.
 *
 * Each poll scans the rows of the scopes, because an index on the transaction would cost each renewal more than the poll
 * is worth. A watch of everything in a large table is better served by LISTEN.
 */
import { jittered, type Timer } from "../../env/index.ts";
import type { StoreEvent, StoreWatch, WatchListener, WatchScope } from "../../store/index.ts";
import { eventsOf } from "./changes.ts";
import type { Row, Statement } from "./driver.ts";
import { lastWithPrefix } from "./names.ts";
import type { StoreContext } from "./options.ts";
import { arrayLiteral, statement } from "./statements.ts";

interface Watch {
  readonly scope: WatchScope;
  readonly listener: WatchListener;
  last: { readonly snapshot: string; readonly rows: number } | null;
}

export class Poller {
  readonly #context: StoreContext;
  readonly #statement: Statement;
  readonly #watches = new Set<Watch>();
  #timer: Timer | null = null;

  constructor(context: StoreContext) {
    this.#context = context;
    this.#statement = pollStatement(context.names.table);
  }

  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    const watch: Watch = { scope, listener, last: null };
    await this.#poll([watch]);
    this.#watches.add(watch);
    this.#timer ??= this.#nextTimer();
    return {
      close: async () => {
        this.#watches.delete(watch);
        if (this.#watches.size === 0) this.close();
      },
    };
  }

  close(): void {
    this.#watches.clear();
    this.#timer?.cancel();
    this.#timer = null;
  }

  #nextTimer(): Timer {
    const { env, pollIntervalMs } = this.#context;
    return env.timer(jittered(env, pollIntervalMs, 0.2), () => {
      this.#poll([...this.#watches])
        .catch(() => "the next poll sees what this one missed")
        .finally(() => {
          if (this.#timer !== null) this.#timer = this.#nextTimer();
        });
    });
  }

  async #poll(watches: readonly Watch[]): Promise<void> {
    const column = (value: (watch: Watch) => string | null): string => arrayLiteral(watches.map(value));
    const rows = await this.#context.calls.query(this.#statement, [
      column(({ scope }) => scope.tenant),
      column(({ scope }) => scope.prefix),
      column(({ scope }) => lastWithPrefix(scope.prefix)),
      column(({ last }) => last?.snapshot ?? null),
    ]);
    for (const row of rows) {
      const watch = watches[Number(row[0]) - 1];
      if (watch === undefined) continue;
      for (const event of eventsSince(watch, row)) if (this.#watches.has(watch)) watch.listener(event);
    }
  }
}

function eventsSince(
  watch: Watch,
  [, snapshot = "", counted, inserted, changed]: Row,
): readonly StoreEvent[] {
  const { last } = watch;
  const now = { snapshot, rows: Number(counted) };
  watch.last = now;
  if (last === null) return [];
  // On an older copy of the server transaction numbers say nothing about the last poll.
  const wentBack = nextTransaction(now.snapshot) < nextTransaction(last.snapshot);
  if (wentBack || last.rows + Number(inserted) > now.rows) return [{ kind: "reset" }];
  return eventsOf(JSON.parse(changed || "[]"));
}

function nextTransaction(snapshot: string): bigint {
  return BigInt(snapshot.split(":")[1] ?? 0);
}

/**
 * Transactions from the future belong to another server from which the rows were restored; they are no changes. A null
 * snapshot, at the first poll, makes nothing new. The two halves of the union differ in the index range that they scan.
 */
function pollStatement(table: string): Statement {
  const isNew = (column: string): string =>
    `not pg_visible_in_snapshot(t.${column}, w.snapshot::pg_snapshot) and t.${column} < pg_snapshot_xmax(pg_current_snapshot())`;
  const inRange = "t.name >= w.low and t.name <= w.high";
  return statement(
    `select w.place, pg_current_snapshot()::text, s.counted, s.inserted, s.changed::text from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as w(tenant, low, high, snapshot, place), lateral (select count(*) as counted, count(*) filter (where ${isNew("inserted")}) as inserted, json_agg(json_build_array(t.tenant, t.name, t.version, t.value)) filter (where ${isNew("changed")}) as changed from (select t.* from ${table} t where t.tenant = w.tenant and ${inRange} union all select t.* from ${table} t where w.tenant is null and t.tenant <> '' and ${inRange}) t) s`,
  );
}
