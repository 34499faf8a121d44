/** From what was last seen of each lease to what has changed. Pure: it knows no store and no clock. */
import type { LeaseView } from "solehold";
import { type LeaseStatus, leaseStatus } from "../../format/lease.ts";

export type ChangeKind =
  | "held"
  | "granted"
  | "renewed"
  | "breaking"
  | "released"
  | "handed over"
  | "revoked"
  | "expired"
  | "removed";

export interface Change {
  readonly kind: ChangeKind;
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
  begin(view: LeaseView): Change | null {
    this.#seen.set(view.key.name, view);
    return view.live ? { kind: "held", view } : null;
  }

  /** Null when nothing has changed that is worth a line. Events may come twice or out of order. */
  update(view: LeaseView): Change | null {
    const { name } = view.key;
    const last = this.#seen.get(name);
    if (last !== undefined && isOlder(view, last)) return null;
    this.#seen.set(name, view);
    const kind = changeKind(last, view);
    return kind === null ? null : { kind, view };
  }

  /** The record is gone: collected long after its end. */
  remove(name: string): Change | null {
    const view = this.#seen.get(name);
    this.#seen.delete(name);
    return view === undefined ? null : { kind: "removed", view };
  }
}

function isOlder(view: LeaseView, last: LeaseView): boolean {
  if (view.fence !== last.fence) return view.fence < last.fence;
  if (last.state !== "held") return view.state === "held";
  return view.state === "held" && view.renewals < last.renewals;
}

const BY_STATUS: { readonly [status in LeaseStatus]: ChangeKind } = {
  held: "granted",
  grace: "granted",
  breaking: "breaking",
  expired: "expired",
  released: "released",
  revoked: "revoked",
  "handed over": "handed over",
};

function changeKind(last: LeaseView | undefined, view: LeaseView): ChangeKind | null {
  const status = leaseStatus(view);
  if (last === undefined || last.fence !== view.fence) return view.live ? "granted" : BY_STATUS[status];
  const before = leaseStatus(last);
  if (status !== before && !(isHeld(before) && isHeld(status))) return BY_STATUS[status];
  return view.live && view.renewals > last.renewals ? "renewed" : null;
}

function isHeld(status: LeaseStatus): boolean {
  return status === "held" || status === "grace";
}
