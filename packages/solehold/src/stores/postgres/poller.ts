/**
 * Changes by polling, for where notifications do not arrive: one statement at an interval, for all watches.
 *
 * Each row carries the number of the transaction that changed it and of the one that inserted it. What was not visible to
 * the snapshot of the last poll, and is now, has changed since: nothing is missed and nothing reported twice, whatever
 * the order of commits. Deleted rows leave no trace, but their number does: rows at the last poll, plus inserted ones,
 * minus rows now. They are reported by a reset.
 *
 * Each poll scans the rows of the scope, because an index on the transaction would cost each renewal more than the poll
 * is worth. A watch of everything in a large table is better served by LISTEN.
 */
import { type Env, jittered, type Timer } from "../../env/index.ts";
import type { StoreWatch, WatchListener, WatchScope } from "../../store/index.ts";
import type { Calls } from "./calls.ts";
import { changedEvent } from "./changes.ts";
import type { Row, Statement } from "./driver.ts";
import { lastWithPrefix } from "./names.ts";
import { arrayLiteral, statement } from "./statements.ts";
import type { ChangeSource } from "./watching.ts";

interface Poll {
  readonly snapshot: string;
  readonly rows: number;
}

interface Watch {
  readonly scope: WatchScope;
  readonly listener: WatchListener;
  last: Poll | null;
}

export interface PollerOptions {
  readonly env: Env;
  readonly calls: Calls;
  readonly table: string;
  readonly intervalMs: number;
}

export class Poller implements ChangeSource {
  readonly #options: PollerOptions;
  readonly #ofTenant: Statement;
  readonly #ofAll: Statement;
  readonly #watches = new Set<Watch>();
  #timer: Timer | null = null;

  constructor(options: PollerOptions) {
    this.#options = options;
    this.#ofTenant = pollStatement(options.table, "t.tenant = w.tenant");
    this.#ofAll = pollStatement(options.table, "t.tenant <> ''");
  }

  async watch(scope: WatchScope, listener: WatchListener): Promise<StoreWatch> {
    const watch: Watch = { scope, listener, last: null };
    await this.#poll([watch]);
    this.#watches.add(watch);
    this.#timer ??= this.#nextTimer();
    return {
      close: async () => {
        this.#watches.delete(watch);
        if (this.#watches.size === 0) this.#stop();
      },
    };
  }

  async close(): Promise<void> {
    this.#watches.clear();
    this.#stop();
  }

  #stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #nextTimer(): Timer {
    const { env, intervalMs } = this.#options;
    return env.timer(jittered(env, intervalMs, 0.2), () => {
      this.#pollAll()
        .catch(() => "the next poll sees what this one missed")
        .finally(() => {
          if (this.#timer !== null) this.#timer = this.#nextTimer();
        });
    });
  }

  async #pollAll(): Promise<void> {
    const all = [...this.#watches];
    await this.#poll(all.filter(({ scope }) => scope.tenant !== null));
    await this.#poll(all.filter(({ scope }) => scope.tenant === null));
  }

  /** All of one kind: of a tenant each, or of all tenants. */
  async #poll(watches: readonly Watch[]): Promise<void> {
    const [first] = watches;
    if (first === undefined) return;
    const column = (value: (watch: Watch) => string | null): string => arrayLiteral(watches.map(value));
    const rows = await this.#options.calls.query(first.scope.tenant === null ? this.#ofAll : this.#ofTenant, [
      column(({ scope }) => scope.tenant),
      column(({ scope }) => scope.prefix),
      column(({ scope }) => lastWithPrefix(scope.prefix)),
      column(({ last }) => last?.snapshot ?? null),
    ]);
    for (const row of rows) {
      const watch = watches[Number(row[0]) - 1];
      if (watch === undefined) continue;
      const isFirst = watch.last === null;
      const events = eventsOf(watch, row);
      for (const event of events) if (isFirst || this.#watches.has(watch)) watch.listener(event);
    }
  }
}

function eventsOf(watch: Watch, row: Row): readonly Parameters<WatchListener>[0][] {
  const { last } = watch;
  const [, snapshot, counted, inserted, changed] = row;
  const poll = { snapshot: snapshot ?? "", rows: Number(counted) };
  watch.last = poll;
  if (last === null) return [];
  const deleted = last.rows + Number(inserted) - poll.rows;
  if (deleted > 0 || wentBack(last, poll)) return [{ kind: "reset" }];
  const changes = JSON.parse(changed ?? "[]") as readonly (readonly unknown[])[];
  return changes.flatMap((parts) => changedEvent(parts) ?? []);
}

/** The server was replaced by an older copy of itself: transaction numbers say nothing about the last poll. */
function wentBack(last: Poll, poll: Poll): boolean {
  const next = ({ snapshot }: Poll): bigint => BigInt(snapshot.split(":")[1] ?? 0);
  return next(poll) < next(last);
}

/**
 * Numbers from the future belong to another server from which the rows were restored; they are no changes. A null
 * snapshot, at the first poll, makes nothing new.
 */
function pollStatement(table: string, tenantCondition: string): Statement {
  const isNew = (column: string): string =>
    `not pg_visible_in_snapshot(t.${column}, w.snapshot::pg_snapshot) and t.${column} < pg_snapshot_xmax(pg_current_snapshot())`;
  return statement(
    `select w.place, pg_current_snapshot()::text, s.counted, s.inserted, s.changed::text from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as w(tenant, low, high, snapshot, place), lateral (select count(*) as counted, count(*) filter (where ${isNew("inserted")}) as inserted, json_agg(json_build_array(t.tenant, t.name, t.version, t.value)) filter (where ${isNew("changed")}) as changed from ${table} t where ${tenantCondition} and t.name >= w.low and t.name <= w.high) s`,
  );
}
