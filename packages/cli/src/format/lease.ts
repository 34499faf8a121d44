/** Leases as scripts read them (JSON documents, fences as decimal strings) and as people do. */

import type { LeaseView } from "solehold";
import { encodeLease, leaseStatus, slotIn } from "solehold/internal";
import type { JsonValue } from "./answer.ts";
import { shortDuration } from "./duration.ts";

/** Everything that anybody may see of a lease. There is no token in it, nor its hash. */
export function leaseDocument(view: LeaseView): { readonly [field: string]: JsonValue } {
  const { leaseId, tenant, name: key, phase: _phase, metadata: _metadata, ...rest } = encodeLease(view);
  const { reservation: _reservation, handoff, ...lease } = rest;
  const status = leaseStatus(view);
  return { leaseId, tenant, key, ...lease, status, handoff: handoff === null ? null : { ...handoff } };
}

/** By the name that was asked for: its slots are one thing. */
export function byName<Item>(
  items: readonly Item[],
  keyNameOf: (item: Item) => string,
): ReadonlyMap<string, Item[]> {
  const things = new Map<string, Item[]>();
  for (const item of items) {
    const { name } = slotIn(keyNameOf(item));
    const parts = things.get(name) ?? [];
    things.set(name, parts);
    parts.push(item);
  }
  return things;
}

/** As people and ISO 8601 write an instant of the store's clock. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** One lease in full, for people. */
export function detailLines(view: LeaseView): readonly string[] {
  const rows: (readonly [string, string])[] = [
    ["key", view.key.name],
    ["tenant", view.key.tenant],
    ["lease id", view.leaseId],
    ["state", leaseStatus(view)],
    ["holder", view.holder],
    ["fence", view.fence.toString()],
    ["purpose", view.purpose],
    ["granted", isoTime(view.grantedAtMs)],
    ["renewed", view.renewals === 0 ? "never" : `${isoTime(view.renewedAtMs)} (${view.renewals} times)`],
    [
      "expires",
      view.live
        ? `${isoTime(view.expiresAtMs)} (in ${shortDuration(view.remainingMs)})`
        : isoTime(view.expiresAtMs),
    ],
    ["ttl", shortDuration(view.ttlMs)],
  ];
  if (view.endedAtMs !== null) rows.push(["ended", isoTime(view.endedAtMs)]);
  if (view.minHoldUntilMs !== null) rows.push(["closed until", isoTime(view.minHoldUntilMs)]);
  if (view.breakAtMs !== null) rows.push(["breaks", isoTime(view.breakAtMs)]);
  if (view.handoff !== null) {
    rows.push(["successor", `${view.handoff.successor} until ${isoTime(view.handoff.deadlineMs)}`]);
  }
  if (view.resumeRequired) rows.push(["resume", "required: the last holder did not finish"]);
  if (view.note !== "") rows.push(["note", view.note]);
  return rows.map(([name, value]) => `${name.padEnd(10)}${value}`);
}
