/** Beside the picture: who believes, what the store's record says, what the guard has seen. */
import type { Trace } from "@solehold/simulator";
import { NEVER_MS } from "../load/audit.ts";
import { colourOf } from "../picture/backdrop.tsx";
import { type Moment, momentOf } from "../state/moment.ts";
import { type FenceNames, seconds } from "../state/words.ts";

export interface NowProps {
  readonly trace: Trace;
  readonly shownKey: string;
  readonly atMs: number;
  readonly fences: FenceNames;
}

export function Now({ trace, shownKey, atMs, fences }: NowProps) {
  const moment = momentOf(trace, shownKey, atMs);
  const isAudit = trace.expectations === null;
  const promised = trace.expectations?.exclusive ?? true;
  return (
    <section class="panel now" aria-label="At this moment">
      <h3>{isAudit ? "Who holds it" : "Who believes"}</h3>
      <ul class="believers">
        {moment.nodes.map(({ name, belief, troubles }) => (
          <li key={name} class={belief === null ? "" : "on"}>
            <span class={`dot ${colourOf(name, trace.lanes)}`} aria-hidden="true" />
            <b>{name}</b>
            <span class="what">
              {belief === null
                ? name === "store"
                  ? "answers"
                  : `does not ${isAudit ? "hold it" : "believe"}`
                : `${isAudit ? "holds it" : "believes"}, fence ${fences.of(belief.fence)}`}
            </span>
            {troubles.map((each) => (
              <span key={each} class="trouble">
                {each}
              </span>
            ))}
          </li>
        ))}
      </ul>
      {moment.believers > 1 && (
        <p class={promised ? "alarm" : "alarm allowed"}>
          {promised
            ? "Two believe at once."
            : "Two believe at once: clocks are further apart than was declared. Only the guard is promised now."}
        </p>
      )}
      <h3>The store's record</h3>
      <RecordTable moment={moment} atMs={atMs} fences={fences} />
      {!isAudit && <Guard moment={moment} fences={fences} />}
    </section>
  );
}

function Guard({ moment: { highest, lastWrite }, fences }: { moment: Moment; fences: FenceNames }) {
  return (
    <>
      <h3>The guard</h3>
      <dl>
        <dt>highest fence</dt>
        <dd>{highest === null ? "none yet" : fences.of(highest)}</dd>
        <dt>last write</dt>
        <dd>
          {lastWrite === null
            ? "none yet"
            : `${lastWrite.who}, fence ${fences.of(lastWrite.fence)}: ${lastWrite.accepted ? "accepted" : "refused"}`}
        </dd>
      </dl>
    </>
  );
}

function RecordTable({
  moment,
  atMs,
  fences,
}: {
  readonly moment: Moment;
  readonly atMs: number;
  readonly fences: FenceNames;
}) {
  const { record } = moment;
  if (record === null || record.state === "absent") return <p class="muted">There is none.</p>;
  const leftMs = record.endsMs - atMs;
  const live = record.state === "held" && leftMs > 0;
  return (
    <dl>
      <dt>holder</dt>
      <dd>{record.holder}</dd>
      <dt>state</dt>
      <dd class={live ? "good" : ""}>{record.state === "held" && leftMs <= 0 ? "expired" : record.state}</dd>
      <dt>fence</dt>
      <dd title={record.fence}>{fences.of(record.fence)}</dd>
      {record.endsMs < NEVER_MS && <dt>{leftMs > 0 ? "ends in" : "ended"}</dt>}
      {record.endsMs < NEVER_MS && <dd>{leftMs > 0 ? seconds(leftMs) : `${seconds(-leftMs)} ago`}</dd>}
      {record.successor !== null && <dt>kept for</dt>}
      {record.successor !== null && <dd>{record.successor}</dd>}
    </dl>
  );
}
