/** Which leases the table shows, and in which order. Pure. */
import type { Lease } from "../data/api.ts";
import { isLive, statusOf } from "../format.ts";
import type { Params } from "../router.ts";

export const STATES = [
  "live",
  "waited for",
  "breaking",
  "expired",
  "released",
  "revoked",
  "handed over",
  "all",
] as const;
export type StateFilter = (typeof STATES)[number];

export const SORTS = ["name", "holder", "left", "fence", "waiters", "age"] as const;
export type Sort = (typeof SORTS)[number];

export interface LeaseFilter {
  readonly prefix: string;
  readonly holder: string;
  readonly purpose: string;
  readonly state: StateFilter;
  readonly sort: Sort;
  readonly order: "up" | "down";
}

export function filterOf(params: Params): LeaseFilter {
  const { prefix = "", holder = "", purpose = "" } = params;
  const state = STATES.find((each) => each === params.state) ?? "live";
  const sort = SORTS.find((each) => each === params.sort) ?? "name";
  return { prefix, holder, purpose, state, sort, order: params.order === "down" ? "down" : "up" };
}

/** Only these need the records of leases that ended. */
export function needsEnded({ state }: LeaseFilter): boolean {
  return state === "all" || state === "released" || state === "revoked" || state === "handed over";
}

/** `leases`: by name. */
export function applyFilter(
  leases: readonly Lease[],
  waiting: ReadonlyMap<string, number>,
  filter: LeaseFilter,
  nowMs: number,
): readonly Lease[] {
  const { prefix, purpose, state } = filter;
  const holder = filter.holder.toLowerCase();
  const found = leases.filter(
    (lease) =>
      lease.name.startsWith(prefix) &&
      (holder === "" || lease.holder.toLowerCase().includes(holder)) &&
      (purpose === "" || lease.purpose === purpose) &&
      isInState(lease, waiting, state, nowMs),
  );
  return inOrder(found, waiting, filter);
}

function isInState(
  lease: Lease,
  waiting: ReadonlyMap<string, number>,
  state: StateFilter,
  nowMs: number,
): boolean {
  if (state === "all") return true;
  if (state === "live") return isLive(lease, nowMs);
  if (state === "waited for") return waiting.has(lease.slotOf);
  return statusOf(lease, nowMs) === state;
}

function inOrder(
  leases: Lease[],
  waiting: ReadonlyMap<string, number>,
  { sort, order }: LeaseFilter,
): readonly Lease[] {
  const sorted = sort === "name" ? leases : leases.sort(comparison(sort, waiting));
  return order === "up" ? sorted : sorted.reverse();
}

/** The sort is stable, so equal ones stay by name. */
function comparison(sort: Sort, waiting: ReadonlyMap<string, number>): (a: Lease, b: Lease) => number {
  const count = ({ slotOf }: Lease): number => waiting.get(slotOf) ?? 0;
  switch (sort) {
    case "holder":
      return (a, b) => (a.holder < b.holder ? -1 : a.holder > b.holder ? 1 : 0);
    case "left":
      return (a, b) => a.expiresAtMs - b.expiresAtMs;
    case "age":
      return (a, b) => a.grantedAtMs - b.grantedAtMs;
    case "fence":
      return (a, b) => (a.fence < b.fence ? -1 : a.fence > b.fence ? 1 : 0);
    case "waiters":
      return (a, b) => count(b) - count(a);
    default:
      return () => 0;
  }
}
