/** The live table of leases. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { Banner, Select } from "../../ui/components.tsx";
import { ConnectionLost, Failed, TenantFilter, TextFilter } from "../components.tsx";
import type { Lease, Who } from "../data/api.ts";
import { LeaseStore, type StoreScope } from "../data/lease-store.ts";
import { storeNow } from "../data/store-clock.ts";
import { counted, grouped, isLive, shortFence, statusOf, toneOf } from "../format.ts";
import { useChanges, useTick, useWide } from "../hooks.ts";
import { leaseHref, type Params, setParams } from "../router.ts";
import { applyFilter, filterOf, type LeaseFilter, needsEnded, type Sort, STATES } from "./filter.ts";
import { FirstSteps } from "./first-steps.tsx";
import { type Row, rowKey, rowsOf, type SlotsRow } from "./rows.ts";
import { TimeLeft } from "./time-left.tsx";
import { VirtualList } from "./virtual-list.tsx";

const ROW_HEIGHT = { wide: 38, narrow: 62 };
/** Beyond this many rows the table is drawn less often than once a frame. */
const MANY_ROWS = 5_000;

export interface LeasesViewProps {
  readonly tenant: string;
  readonly params: Params;
  readonly who: Who;
}

export function LeasesView({ tenant, params, who }: LeasesViewProps) {
  const filter = filterOf(params);
  const store = useStore(scopeOf(tenant, filter, who));
  useChanges(store.subscribe, store.leases.size > MANY_ROWS ? 250 : 0);
  useTick(500);
  const nowMs = storeNow();
  const isWide = useWide();
  // Leases expire without an event of their own where the server does not announce it: look again every second.
  const second = Math.floor(nowMs / 1_000);
  // The version stands for the rows, the second for the time.
  const leases = useMemo(
    () => applyFilter(store.leases.all, store.waiting, filter, storeNow()),
    [store, store.version, second, JSON.stringify(filter)],
  );
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(() => rowsOf(leases, store.leases.all, open, storeNow()), [leases, open]);
  const toggle = (name: string): void => {
    const changed = new Set(open);
    if (!changed.delete(name)) changed.add(name);
    setOpen(changed);
  };
  const choose = (row: Row): void => {
    if (row.kind === "slots") toggle(row.name);
    else location.hash = leaseHref(row.lease.tenant, row.lease.name);
  };
  const isFiltered = `${filter.prefix}${filter.holder}${filter.purpose}` !== "" || filter.state !== "live";
  const isEmpty = store.loading === "complete" && store.leases.size === 0 && store.corrupt.size === 0;
  return (
    <main class="view view-table">
      <h1 class="visually-hidden">Leases</h1>
      <Filters {...{ filter, tenant, params, who }} />
      <StoreBanners store={store} />
      {isEmpty && filter.state === "live" ? (
        <FirstSteps who={who} />
      ) : (
        <>
          <p class="count muted" role="status">
            {counted(leases.length, "lease")}
            {isFiltered ? ` of ${grouped(store.leases.size)}` : ""}
            {store.loading === "loading" ? ", loading…" : ""}
          </p>
          <div class="panel table-panel">
            <VirtualList
              items={rows}
              label="Leases"
              columns={7}
              rowHeight={isWide ? ROW_HEIGHT.wide : ROW_HEIGHT.narrow}
              keyOf={rowKey}
              header={<Header filter={filter} />}
              row={(row) =>
                row.kind === "lease" ? (
                  <LeaseCells
                    lease={row.lease}
                    isSlot={row.isSlot}
                    waiting={row.isSlot ? 0 : (store.waiting.get(row.lease.name) ?? 0)}
                    nowMs={nowMs}
                  />
                ) : (
                  <SlotsCells
                    row={row}
                    isOpen={open.has(row.name)}
                    waiting={store.waiting.get(row.name) ?? 0}
                    nowMs={nowMs}
                  />
                )
              }
              onOpen={choose}
            />
            {leases.length === 0 && store.loading !== "loading" && (
              <p class="no-match muted">No lease matches these filters.</p>
            )}
          </div>
        </>
      )}
    </main>
  );
}

function useStore(scope: StoreScope): LeaseStore {
  const { tenant, prefix, which } = scope;
  const store = useMemo(() => new LeaseStore({ tenant, prefix, which }), [tenant, prefix, which]);
  useEffect(() => {
    store.start();
    return () => store.close();
  }, [store]);
  return store;
}

/** A key for some prefixes cannot list all: it lists under the one that is asked for, or under its first. */
function scopeOf(tenant: string, filter: LeaseFilter, { prefixes }: Who): StoreScope {
  const isFree = prefixes.includes("");
  const isAllowed = prefixes.some((prefix) => filter.prefix.startsWith(prefix));
  const prefix = isFree ? "" : isAllowed ? filter.prefix : (prefixes[0] ?? "");
  return { tenant, prefix, which: needsEnded(filter) ? "all" : "held" };
}

function StoreBanners({ store }: { store: LeaseStore }) {
  return (
    <>
      <ConnectionLost stream={store.stream} />
      <Failed what="The leases" error={store.error} />
      {store.loading === "truncated" && (
        <Banner tone="warn">Only the first {grouped(store.leases.size)} leases are shown.</Banner>
      )}
      {[...store.corrupt].slice(0, 5).map(([name, detail]) => (
        <Banner key={name} tone="bad">
          <span>
            The record of{" "}
            <a href={leaseHref(store.scope.tenant, name)} class="mono">
              {name}
            </a>{" "}
            is damaged: {detail}.
          </span>
        </Banner>
      ))}
    </>
  );
}

function Filters({ filter, tenant, params, who }: LeasesViewProps & { filter: LeaseFilter }) {
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="Filter">
      <TextFilter label="Key begins with" name="prefix" placeholder="reports/" params={params} isKey />
      <TextFilter label="Holder contains" name="holder" placeholder="worker" params={params} />
      <Select
        label="State"
        usual="live"
        values={STATES.filter((state) => state !== "live")}
        value={filter.state === "live" ? "" : filter.state}
        onChange={(state) => setParams({ state })}
      />
      <Select
        label="Purpose"
        usual="any"
        values={["Operation", "StateWrite", "MigrationHandoff"]}
        value={filter.purpose}
        onChange={(purpose) => setParams({ purpose })}
      />
      <TenantFilter tenant={tenant} who={who} />
    </form>
  );
}

const COLUMNS: readonly { readonly title: string; readonly sort: Sort | null; readonly align?: "end" }[] = [
  { title: "Key", sort: "name" },
  { title: "Holder", sort: "holder" },
  { title: "Purpose", sort: null },
  { title: "Fence", sort: "fence", align: "end" },
  { title: "State", sort: null },
  { title: "Time left", sort: "left" },
  { title: "Waiting", sort: "waiters", align: "end" },
];

function Header({ filter }: { filter: LeaseFilter }) {
  const choose = (sort: Sort): void => {
    const isSame = filter.sort === sort;
    setParams({ sort: sort === "name" ? "" : sort, order: isSame && filter.order === "up" ? "down" : "" });
  };
  return (
    <div class="table-head" role="rowgroup">
      <div class="row" role="row" aria-rowindex={1}>
        {COLUMNS.map(({ title, sort, align }) => (
          <div
            key={title}
            role="columnheader"
            class={align === "end" ? "end" : ""}
            aria-sort={
              sort !== null && sort === filter.sort
                ? filter.order === "up"
                  ? "ascending"
                  : "descending"
                : "none"
            }
          >
            {sort === null ? (
              title
            ) : (
              <button
                type="button"
                onClick={() => choose(sort)}
                data-sorted={sort === filter.sort ? filter.order : ""}
              >
                {title}
              </button>
            )}
          </div>
        ))}
      </div>
    </div>
  );
}

function LeaseCells(props: { lease: Lease; isSlot: boolean; waiting: number; nowMs: number }) {
  const { lease, isSlot, waiting, nowMs } = props;
  const status = statusOf(lease, nowMs);
  return (
    <>
      <div role="cell" data-cell="key" data-slot={isSlot}>
        <a class="mono" href={leaseHref(lease.tenant, lease.name)} title={lease.name}>
          {isSlot ? `slot ${lease.slot}` : lease.name}
        </a>
      </div>
      <div role="cell" data-cell="holder" title={lease.holder}>
        {lease.holder}
      </div>
      <div role="cell" data-cell="purpose">
        {lease.purpose}
      </div>
      <div role="cell" data-cell="fence">
        {shortFence(lease.fence)}
      </div>
      <div role="cell" data-cell="state" class="status" data-tone={toneOf(status)}>
        {status}
      </div>
      <TimeCell lease={lease} nowMs={nowMs} />
      <WaitersCell waiting={waiting} />
    </>
  );
}

/** All slots of a name; the time is that of the slot that is free first if nobody renews it. */
function SlotsCells(props: { row: SlotsRow; isOpen: boolean; waiting: number; nowMs: number }) {
  const { row, isOpen, waiting, nowMs } = props;
  const { name, taken, of, slots } = row;
  const live = slots.filter((lease) => isLive(lease, nowMs));
  const next = live.toSorted((a, b) => a.expiresAtMs - b.expiresAtMs)[0];
  const holders = live.map(({ holder }) => holder).join(", ");
  return (
    <>
      <div role="cell" data-cell="key">
        <button type="button" class="mono slots" aria-expanded={isOpen} title={name}>
          {name}
        </button>
      </div>
      <div role="cell" data-cell="holder" title={holders}>
        {holders}
      </div>
      <div role="cell" data-cell="purpose">
        {next?.purpose}
      </div>
      <div role="cell" data-cell="fence" />
      <div
        role="cell"
        data-cell="state"
        class="status"
        data-tone={taken === 0 ? "ended" : "good"}
        title="Of the slots that were seen in use. How many there are is said by those who ask for one."
      >
        {taken === of ? `${taken} held` : `${taken} of ${of} held`}
      </div>
      <TimeCell lease={next} nowMs={nowMs} />
      <WaitersCell waiting={waiting} />
    </>
  );
}

function TimeCell({ lease, nowMs }: { lease: Lease | undefined; nowMs: number }) {
  return (
    <div role="cell" data-cell="left" class="time-left">
      {lease !== undefined && <TimeLeft lease={lease} nowMs={nowMs} />}
    </div>
  );
}

function WaitersCell({ waiting }: { waiting: number }) {
  return (
    <div role="cell" data-cell="waiters" class={waiting === 0 ? "muted" : "waited"}>
      {waiting === 0 ? "–" : waiting}
    </div>
  );
}
