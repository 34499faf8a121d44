/** The record as anybody who may read it sees it. It has no token in it. */
import { durationInWords } from "solehold/browser";
import { type Fact, Facts, Panel } from "../../ui/components.tsx";
import type { Lease } from "../data/api.ts";
import { isoOf, shortFence } from "../format.ts";

export function RecordPanel({ lease }: { lease: Lease }) {
  const { handoff, breakAtMs, endedAtMs, note } = lease;
  const facts: readonly Fact[] = [
    ["holder", lease.holder],
    ["purpose", lease.purpose],
    ["state", lease.state],
    ["fence", shortFence(lease.fence)],
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
    <Panel id="record" title="Record">
      <Facts facts={facts} kind="lines" />
    </Panel>
  );
}
