/** The record as anybody who may read it sees it. It has no token in it. */
import { durationInWords } from "solehold/browser";
import type { Lease } from "../data/api.ts";
import { isoOf } from "../format.ts";

export function RecordPanel({ lease }: { lease: Lease }) {
  const { handoff, breakAtMs, endedAtMs, note } = lease;
  const rows: readonly (readonly [string, string])[] = [
    ["holder", lease.holder],
    ["purpose", lease.purpose],
    ["state", lease.state],
    ["fence", lease.fence.replace(/^0+(?=\d)/, "")],
    ["term", lease.term],
    ["generation", lease.generation],
    ["ttl", durationInWords(lease.ttlMs)],
    ["granted", isoOf(lease.grantedAtMs)],
    ["renewed", `${isoOf(lease.renewedAtMs)} (${lease.renewals})`],
    ["expires", isoOf(lease.expiresAtMs)],
    ...(endedAtMs === null ? [] : [["ended", isoOf(endedAtMs)] as const]),
    ...(breakAtMs === null ? [] : [["breaks", isoOf(breakAtMs)] as const]),
    ...(handoff === null
      ? []
      : [["successor", `${handoff.successor} until ${isoOf(handoff.deadlineMs)}`] as const]),
    ...(lease.resumeRequired ? [["resume", "required: the last holder did not finish"] as const] : []),
    ...(note === "" ? [] : [["note", note] as const]),
  ];
  return (
    <section class="panel record" aria-labelledby="record">
      <div class="section-head">
        <h2 id="record">Record</h2>
      </div>
      <dl>
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt class="muted">{name}</dt>
            <dd class="mono">{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
