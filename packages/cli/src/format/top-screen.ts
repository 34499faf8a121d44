/** One screen of `solehold top`, as lines: how many are held, then as many of them as fit. Pure. */
import type { LeaseView } from "solehold";
import { leaseStatus } from "solehold/internal";
import { shortDuration } from "./duration.ts";
import { byName } from "./lease.ts";
import { type Column, tableLines } from "./table.ts";
import { escapeControls, type Paint } from "./terminal.ts";

export type TopOrder = "key" | "holder" | "left" | "waiting";

/** A lease, and when it was seen on the caller's monotonic clock. */
export interface SeenLease {
  readonly view: LeaseView;
  readonly seenMs: number;
}

/** What is known of a name besides its leases. */
export interface Demand {
  readonly waiting: number;
  /** How many slots were seen, held or ended; 1 for a name without. */
  readonly slots: number;
}

export interface TopScreen {
  readonly leases: readonly SeenLease[];
  readonly demand: (name: string) => Demand;
  readonly order: TopOrder;
  readonly nowMs: number;
  /** What stands behind the count: where, and since when. */
  readonly title: string;
  /** What went wrong last; empty for nothing. */
  readonly trouble: string;
  readonly size: { readonly columns: number; readonly rows: number };
}

/** A name that is held: one lease, or several slots of it. */
interface Row {
  readonly name: string;
  /** The one that ends first. */
  readonly next: LeaseView;
  readonly leftMs: number;
  readonly holders: readonly string[];
  readonly slots: number;
  readonly waiting: number;
}

const BAR_CELLS = 12;
const LOW = 0.2;
const STATE_COLUMN = 3;
const BAR_COLUMN = 4;
const WAITING_COLUMN = 6;
const COLUMNS: readonly Column[] = [
  { title: "KEY", align: "left" },
  { title: "HOLDER", align: "left", elastic: "yes" },
  { title: "FENCE", align: "right" },
  { title: "STATE", align: "left" },
  { title: "", align: "left" },
  { title: "LEFT", align: "right" },
  { title: "WAITING", align: "right" },
  { title: "PURPOSE", align: "left" },
];

export function topLines(screen: TopScreen, paint: Paint): readonly string[] {
  const { order, size, title, trouble } = screen;
  const rows = rowsOf(screen).toSorted(by(order));
  const held = rows.reduce((sum, { holders }) => sum + holders.length, 0);
  const waiting = rows.reduce((sum, row) => sum + row.waiting, 0);
  const counts = `${held} held${waiting === 0 ? "" : `, ${waiting} waiting`}`;
  const head = [
    `${paint("bold", counts)}  ${escapeControls(title)}`,
    trouble === "" ? "" : paint("yellow", escapeControls(trouble)),
  ];
  if (rows.length === 0) return [...head, "nothing is held: solehold run my/job -- sleep 60"];
  const room = Math.max(1, size.rows - head.length - 2);
  const shown = rows.slice(0, room);
  const table = tableLines(COLUMNS, shown.map(cellsOf), size.columns, (cell, column, index) => {
    const row = index === "title" ? undefined : shown[index];
    if (row === undefined) return paint("dim", cell);
    if (column === WAITING_COLUMN) return row.waiting === 0 ? cell : paint("yellow", cell);
    if (column !== STATE_COLUMN && column !== BAR_COLUMN) return cell;
    const isLow = column === BAR_COLUMN ? shareOf(row) < LOW : leaseStatus(row.next) !== "held";
    return paint(isLow ? "yellow" : "green", cell);
  });
  const more = rows.length > room ? [paint("dim", `and ${rows.length - room} more`)] : [];
  return [...head, ...table, ...more];
}

function rowsOf({ leases, nowMs, demand }: TopScreen): readonly Row[] {
  const leftMs = ({ view, seenMs }: SeenLease): number => view.remainingMs - (nowMs - seenMs);
  const live = leases.filter((lease) => lease.view.live && leftMs(lease) > 0);
  return [...byName(live, ({ view }) => view.key.name)].flatMap(([name, held]): Row[] => {
    const [first] = held.sort((a, b) => leftMs(a) - leftMs(b));
    if (first === undefined) return [];
    const { waiting, slots } = demand(name);
    return [
      {
        ...{ name, next: first.view, leftMs: leftMs(first), holders: held.map(({ view }) => view.holder) },
        ...{ waiting, slots },
      },
    ];
  });
}

function shareOf({ next, leftMs }: Row): number {
  return Math.min(1, leftMs / next.ttlMs);
}

function cellsOf(row: Row): readonly string[] {
  const { name, next, leftMs, holders, slots, waiting } = row;
  const cells = Math.max(1, Math.round(shareOf(row) * BAR_CELLS));
  const bar = `${"█".repeat(cells)}${"░".repeat(BAR_CELLS - cells)}`;
  const state = slots === 1 ? leaseStatus(next) : `${holders.length} of ${slots}`;
  const fence = slots === 1 ? next.fence.toString() : "";
  const left = shortDuration(leftMs);
  return [name, holders.join(", "), fence, state, bar, left, waiting === 0 ? "" : `${waiting}`, next.purpose];
}

function by(order: TopOrder): (a: Row, b: Row) => number {
  const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  const byName = (a: Row, b: Row): number => text(a.name, b.name);
  switch (order) {
    case "left":
      return (a, b) => a.leftMs - b.leftMs || byName(a, b);
    case "waiting":
      return (a, b) => b.waiting - a.waiting || byName(a, b);
    case "holder":
      return (a, b) => text(a.holders.join(), b.holders.join()) || byName(a, b);
    default:
      return byName;
  }
}
