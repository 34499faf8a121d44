/** Leases as scripts read them (JSON documents, fences as decimal strings) and as people do. */

import { formatFence, type LeaseView } from "solehold";
import { leaseStatus, slotIn } from "solehold/internal";
import type { JsonValue } from "./answer.ts";
import { shortDuration } from "./duration.ts";

/** Everything that anybody may see of a lease. There is no token in it, nor its hash. */
export function leaseDocument(view: LeaseView): { readonly [field: string]: JsonValue } {
  const { key, handoff } = view;
  return {
    leaseId: view.leaseId,
    tenant: key.tenant,
    key: key.name,
    ...slotFields(key.name),
    holder: view.holder,
    purpose: view.purpose,
    fence: formatFence(view.fence),
    term: view.term.toString(),
    generation: view.generation.toString(),
    state: view.state,
    status: leaseStatus(view),
    live: view.live,
    ttlMs: view.ttlMs,
    grantedAtMs: view.grantedAtMs,
    renewedAtMs: view.renewedAtMs,
    expiresAtMs: view.expiresAtMs,
    endedAtMs: view.endedAtMs,
    remainingMs: view.remainingMs,
    renewals: view.renewals,
    resumeRequired: view.resumeRequired,
    breakAtMs: view.breakAtMs,
    minHoldUntilMs: view.minHoldUntilMs,
    lockDelayMs: view.lockDelayMs,
    handoff: handoff === null ? null : { successor: handoff.successor, deadlineMs: handoff.deadlineMs },
    note: view.note,
  };
}

/** Leases that have `slotOf` in common are the slots of one thing. */
function slotFields(name: string): { readonly slotOf: string; readonly slot: number } {
  const { name: slotOf, slot } = slotIn(name);
  return { slotOf, slot };
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
