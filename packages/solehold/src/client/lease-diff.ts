/** From what was last seen of each lease to what has changed. Pure: it knows no store and no clock. */
import { isOlderRecord } from "../core/index.ts";
import { type LeaseStatus, type LeaseView, leaseStatus } from "../executor/index.ts";

export type LeaseChangeKind =
  | "held"
  | "granted"
  | "renewed"
  | "breaking"
  | "released"
  | "handed over"
  | "revoked"
  | "expired"
  | "removed";

/** What happened to a lease. "held": it was there when the watch began. "removed": its record was collected. */
export interface LeaseChange {
  readonly kind: LeaseChangeKind;
  readonly view: LeaseView;
}

export class LeaseDiff {
  readonly #seen = new Map<string, LeaseView>();

  get(name: string): LeaseView | undefined {
    return this.#seen.get(name);
  }

  names(): readonly string[] {
    return [...this.#seen.keys()];
  }

  /** A lease that was there before the watch began. */
  begin(view: LeaseView): LeaseChange | null {
    this.#seen.set(view.key.name, view);
    return view.live ? { kind: "held", view } : null;
  }

  /** Null when nothing has changed that is worth a line. Events may come twice or out of order. */
  update(view: LeaseView): LeaseChange | null {
    const { name } = view.key;
    const last = this.#seen.get(name);
    if (last !== undefined && isOlderRecord(view, last)) return null;
    this.#seen.set(name, view);
    const kind = changeKind(last, view);
    return kind === null ? null : { kind, view };
  }

  /** The record is gone: collected long after its end. */
  remove(name: string): LeaseChange | null {
    const view = this.#seen.get(name);
    this.#seen.delete(name);
    return view === undefined ? null : { kind: "removed", view };
  }
}

const BY_STATUS: { readonly [status in LeaseStatus]: LeaseChangeKind } = {
  held: "granted",
  grace: "granted",
  breaking: "breaking",
  expired: "expired",
  released: "released",
  revoked: "revoked",
  "handed over": "handed over",
};

function changeKind(last: LeaseView | undefined, view: LeaseView): LeaseChangeKind | null {
  const status = leaseStatus(view);
  if (last === undefined || last.fence !== view.fence) return view.live ? "granted" : BY_STATUS[status];
  const before = leaseStatus(last);
  if (status !== before && !(isHeld(before) && isHeld(status))) return BY_STATUS[status];
  return view.live && view.renewals > last.renewals ? "renewed" : null;
}

function isHeld(status: LeaseStatus): boolean {
  return status === "held" || status === "grace";
}
