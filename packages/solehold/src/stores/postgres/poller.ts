/**
 * News by looking, for where notifications do not arrive: one statement at an interval, for all watches.
 *
 * Each row carries the number of the transaction that changed it and of the one that inserted it. What was
 * not visible to the snapshot of the last look, and is now, has changed since: nothing is missed and nothing
 * told twice, whatever order transactions commit in. Deleted rows leave no trace, but their number does:
 * rows at the last look, plus inserted ones, minus rows now.
 *
 * Rows of a scope are scanned at every look, because an index on the transaction number would cost each
 * renewal more than the look is worth. A watch of everything in a large table is better served by LISTEN.
 */
import { type Env, jittered, type Timer } from "../../env/index.ts";
import type { WatchScope } from "../../store/index.ts";
import type { Row, SqlDriver } from "./driver.ts";
import type { TableNames } from "./names.ts";
import type { NewsSource, ScopeHandlers, ScopeSubscription } from "./news.ts";
import { changesFrom } from "./payloads.ts";
import { CHANGED_COLUMN, INSERTED_COLUMN } from "./schema.ts";
import { arrayLiteral, upperBound } from "./sql-text.ts";
import { type Statement, statement } from "./statements.ts";

/** More changes at once than this are not named one by one. */
const MAX_NAMED = 5_000;

interface Look {
  readonly snapshot: string;
  readonly rows: number;
}

interface Subscription {
  readonly scope: WatchScope;
  readonly handlers: ScopeHandlers;
  last: Look | null;
}

export interface PollerOptions {
  readonly env: Env;
  readonly driver: SqlDriver;
  readonly names: TableNames;
  readonly intervalMs: number;
}

export class Poller implements NewsSource {
  readonly #options: PollerOptions;
  readonly #statements: { readonly tenant: Statement; readonly all: Statement };
  readonly #subscriptions = new Set<Subscription>();
  #timer: Timer | null = null;

  constructor(options: PollerOptions) {
    this.#options = options;
    const { sqlTable } = options.names;
    this.#statements = { tenant: lookStatement(sqlTable, "tenant"), all: lookStatement(sqlTable, "all") };
  }

  async subscribe(scope: WatchScope, handlers: ScopeHandlers): Promise<ScopeSubscription> {
    const subscription: Subscription = { scope, handlers, last: null };
    await this.#look([subscription]);
    this.#subscriptions.add(subscription);
    this.#timer ??= this.#nextTimer();
    return {
      close: async () => {
        this.#subscriptions.delete(subscription);
        if (this.#subscriptions.size === 0) this.#stop();
      },
    };
  }

  async close(): Promise<void> {
    this.#subscriptions.clear();
    this.#stop();
  }

  #stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #nextTimer(): Timer {
    return this.#options.env.timer(jittered(this.#options.env, this.#options.intervalMs, 0.2), () => {
      this.#lookAtAll()
        .catch(() => "the next look sees what this one missed")
        .finally(() => {
          if (this.#timer !== null) this.#timer = this.#nextTimer();
        });
    });
  }

  async #lookAtAll(): Promise<void> {
    const all = [...this.#subscriptions];
    const ofTenants = all.filter(({ scope }) => scope.tenant !== null);
    const ofAll = all.filter(({ scope }) => scope.tenant === null);
    for (const part of [ofTenants, ofAll]) if (part.length > 0) await this.#look(part);
  }

  /** All of one kind: of a tenant each, or of all tenants. */
  async #look(subscriptions: readonly Subscription[]): Promise<void> {
    const { tenant, all } = this.#statements;
    const column = (value: (subscription: Subscription) => string | null): string =>
      arrayLiteral(subscriptions.map(value));
    const rows = await this.#options.driver.query(subscriptions[0]?.scope.tenant === null ? all : tenant, [
      column(({ scope }) => scope.tenant),
      column(({ scope }) => scope.prefix),
      column(({ scope }) => upperBound(scope.prefix)),
      column(({ last }) => last?.snapshot ?? null),
    ]);
    for (const row of rows) {
      const subscription = subscriptions[Number(row[0]) - 1];
      if (subscription !== undefined) tell(subscription, row);
    }
  }
}

function tell(subscription: Subscription, row: Row): void {
  const { handlers, last } = subscription;
  const [, snapshot, counted, inserted, changedIds] = row;
  const look = { snapshot: snapshot ?? "", rows: Number(counted) };
  subscription.last = look;
  if (last === null) return;
  const deleted = last.rows + Number(inserted) - look.rows;
  const changes = changesFrom(changedIds ?? "");
  if (deleted > 0 || changes.length > MAX_NAMED || wentBack(last, look)) handlers.onReset();
  else if (changes.length > 0) handlers.onChanges(changes);
}

/** The server was replaced by an older copy of itself: transaction numbers say nothing about the last look. */
function wentBack(last: Look, look: Look): boolean {
  const next = ({ snapshot }: Look): bigint => BigInt(snapshot.split(":")[1] ?? 0);
  return next(look) < next(last);
}

/**
 * Numbers from the future belong to another server from which the rows were restored; they are no news.
 * A null snapshot, at the first look, makes nothing new.
 */
function lookStatement(table: string, kind: "tenant" | "all"): Statement {
  const fresh = (column: string): string =>
    `not pg_visible_in_snapshot(t.${column}, w.snapshot::pg_snapshot) and t.${column} < pg_snapshot_xmax(pg_current_snapshot())`;
  const inTenant = kind === "tenant" ? "t.tenant_id = w.tenant_id and " : "";
  return statement(
    `select w.place::text, pg_current_snapshot()::text, s.counted::text, s.inserted::text, s.changed from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as w(tenant_id, low, high, snapshot, place), lateral (select count(*) as counted, count(*) filter (where ${fresh(INSERTED_COLUMN)}) as inserted, string_agg(t.tenant_id || '/' || t.work_order_id, E'\\n') filter (where ${fresh(CHANGED_COLUMN)}) as changed from ${table} t where ${inTenant}t.work_order_id >= w.low and (w.high is null or t.work_order_id < w.high)) s`,
  );
}
