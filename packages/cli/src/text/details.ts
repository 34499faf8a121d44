/** One lease in full, for people. */
import type { LeaseView } from "solehold";
import { shortDuration } from "./duration.ts";
import { isoTime, leaseStatus } from "./lease.ts";
import { printable } from "./style.ts";

export function detailLines(view: LeaseView): readonly string[] {
  const rows: (readonly [string, string])[] = [
    ["key", view.key.name],
    ["tenant", view.key.tenant],
    ["state", leaseStatus(view)],
    ["holder", printable(view.holder)],
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
  if (view.breakAtMs !== null) rows.push(["breaks", isoTime(view.breakAtMs)]);
  if (view.handoff !== null) {
    rows.push([
      "successor",
      `${printable(view.handoff.successor)} until ${isoTime(view.handoff.deadlineMs)}`,
    ]);
  }
  if (view.resumeRequired) rows.push(["resume", "required: the last holder did not finish"]);
  if (view.note !== "") rows.push(["note", printable(view.note)]);
  return rows.map(([name, value]) => `${name.padEnd(10)}${value}`);
}
