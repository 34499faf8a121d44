/** The rows of the table: leases, and one row for all slots of a name. Pure. */
import type { Lease } from "../data/api.ts";
import { isLive } from "../format.ts";

/** A name that several may hold at once. */
export interface SlotsRow {
  readonly kind: "slots";
  readonly tenant: string;
  readonly name: string;
  /** How many of its slots are live, whatever the filter shows. */
  readonly taken: number;
  /** How many were seen; nobody writes down how many there are. */
  readonly of: number;
  /** Those that the filter shows, by their number. */
  readonly slots: readonly Lease[];
}

export interface LeaseRow {
  readonly kind: "lease";
  readonly lease: Lease;
  /** Whether it stands below the row of its name. */
  readonly isSlot: boolean;
}

export type Row = LeaseRow | SlotsRow;

/**
 * `shown`: the leases that match, in order; `all`: every lease that is known. A name's row stands where the first of its
 * slots would, and its slots are below it where `open` has the name.
 */
export function rowsOf(
  shown: readonly Lease[],
  all: readonly Lease[],
  open: ReadonlySet<string>,
  nowMs: number,
): readonly Row[] {
  const names = slotNames(all, nowMs);
  const slots = new Map<string, Lease[]>();
  const rows: Row[] = [];
  for (const lease of shown) {
    const counts = names.get(lease.slotOf);
    if (counts === undefined) {
      rows.push({ kind: "lease", lease, isSlot: false });
      continue;
    }
    const known = slots.get(lease.slotOf);
    if (known !== undefined) {
      known.push(lease);
      continue;
    }
    const own = [lease];
    slots.set(lease.slotOf, own);
    rows.push({ kind: "slots", tenant: lease.tenant, name: lease.slotOf, ...counts, slots: own });
  }
  for (const own of slots.values()) own.sort((a, b) => a.slot - b.slot);
  if (open.size === 0) return rows;
  return rows.flatMap((row): readonly Row[] =>
    row.kind === "slots" && open.has(row.name)
      ? [row, ...row.slots.map((lease) => ({ kind: "lease" as const, lease, isSlot: true }))]
      : [row],
  );
}

/** The names of which a slot behind the first is known. */
function slotNames(
  all: readonly Lease[],
  nowMs: number,
): ReadonlyMap<string, { readonly taken: number; readonly of: number }> {
  const names = new Map<string, { taken: number; of: number }>();
  for (const { slot, slotOf } of all) {
    if (slot === 0) continue;
    const known = names.get(slotOf);
    if (known === undefined) names.set(slotOf, { taken: 0, of: slot + 1 });
    else known.of = Math.max(known.of, slot + 1);
  }
  if (names.size === 0) return names;
  for (const lease of all) {
    const counts = names.get(lease.slotOf);
    if (counts !== undefined && isLive(lease, nowMs)) counts.taken += 1;
  }
  return names;
}

export function rowKey(row: Row): string {
  return row.kind === "slots" ? `slots of ${row.name}` : row.lease.name;
}
