/** One screen of `solehold top`, as lines: how many are held, then as many of them as fit. Pure. */
import type { LeaseView } from "solehold";
import { leaseStatus } from "solehold/internal";
import { shortDuration } from "./duration.ts";
import { type Column, tableLines } from "./table.ts";
import { escapeControls, type Paint } from "./terminal.ts";

export type TopOrder = "key" | "holder" | "left";

/** A lease, and when it was seen on the caller's monotonic clock. */
export interface SeenLease {
  readonly view: LeaseView;
  readonly seenMs: number;
}

export interface TopScreen {
  readonly leases: readonly SeenLease[];
  readonly order: TopOrder;
  readonly nowMs: number;
  /** What stands behind the count: where, and since when. */
  readonly title: string;
  /** What went wrong last; empty for nothing. */
  readonly trouble: string;
  readonly size: { readonly columns: number; readonly rows: number };
}

const BAR_CELLS = 12;
const LOW = 0.2;
const STATE_COLUMN = 3;
const BAR_COLUMN = 4;
const COLUMNS: readonly Column[] = [
  { title: "KEY", align: "left" },
  { title: "HOLDER", align: "left", elastic: "yes" },
  { title: "FENCE", align: "right" },
  { title: "STATE", align: "left" },
  { title: "", align: "left" },
  { title: "LEFT", align: "right" },
  { title: "PURPOSE", align: "left" },
];

export function topLines(screen: TopScreen, paint: Paint): readonly string[] {
  const { order, nowMs, size, title, trouble } = screen;
  const left = ({ view, seenMs }: SeenLease): number => view.remainingMs - (nowMs - seenMs);
  const held = screen.leases.filter((lease) => lease.view.live && left(lease) > 0).toSorted(by(order, left));
  const head = [
    `${paint("bold", `${held.length} held`)}  ${escapeControls(title)}`,
    trouble === "" ? "" : paint("yellow", escapeControls(trouble)),
  ];
  if (held.length === 0) return [...head, "nothing is held: solehold run my/job -- sleep 60"];
  const room = Math.max(1, size.rows - head.length - 2);
  const shown = held.slice(0, room);
  const share = (lease: SeenLease): number => Math.min(1, left(lease) / lease.view.ttlMs);
  const rows = shown.map((lease) => rowOf(lease.view, left(lease), share(lease)));
  const table = tableLines(COLUMNS, rows, size.columns, (cell, column, row) => {
    const lease = row === "title" ? undefined : shown[row];
    if (lease === undefined) return paint("dim", cell);
    if (column !== STATE_COLUMN && column !== BAR_COLUMN) return cell;
    const isLow = column === BAR_COLUMN ? share(lease) < LOW : leaseStatus(lease.view) !== "held";
    return paint(isLow ? "yellow" : "green", cell);
  });
  const more = held.length > room ? [paint("dim", `and ${held.length - room} more`)] : [];
  return [...head, ...table, ...more];
}

function rowOf(view: LeaseView, leftMs: number, share: number): readonly string[] {
  const { key, holder, fence, purpose } = view;
  const cells = Math.max(1, Math.round(share * BAR_CELLS));
  const bar = `${"█".repeat(cells)}${"░".repeat(BAR_CELLS - cells)}`;
  return [key.name, holder, fence.toString(), leaseStatus(view), bar, shortDuration(leftMs), purpose];
}

function by(order: TopOrder, left: (lease: SeenLease) => number): (a: SeenLease, b: SeenLease) => number {
  const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  const byKey = (a: SeenLease, b: SeenLease): number => text(a.view.key.name, b.view.key.name);
  if (order === "left") return (a, b) => left(a) - left(b) || byKey(a, b);
  return order === "holder" ? (a, b) => text(a.view.holder, b.view.holder) || byKey(a, b) : byKey;
}
