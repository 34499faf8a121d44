/** Who held one lease, over time; beneath, who waited for it. The line of now moves. */

import { useState } from "preact/hooks";
import { durationInWords, type Tenure } from "solehold/browser";
import { type Fact, Facts, Panel, Segmented } from "../../ui/components.tsx";
import { useWidth } from "../../ui/use-width.ts";
import { localMs } from "../data/store-clock.ts";
import { timeOf } from "../format.ts";
import { type Bar, layoutTimeline, RANGES, type Range, type TimelineInput } from "./timeline-layout.ts";

/** A label nearer to the right edge would stand out over it, and one beside the line of now would lie under its label. */
const AXIS_LABEL_PX = 60;
const NOW_LABEL_PX = 20;

export type TimelineProps = Omit<TimelineInput, "width" | "clockShiftMs"> & {
  readonly onRange: (range: Range) => void;
};

export function Timeline({ onRange, ...input }: TimelineProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [chosen, setChosen] = useState<string | null>(null);
  const [hovered, setHovered] = useState<string | null>(null);
  const layout = layoutTimeline({ ...input, width, clockShiftMs: clockShiftMs(input.nowMs) });
  const { bars, remaining, lanes } = layout;
  const shown =
    input.tenures.find(({ fence }) => fence === (hovered ?? chosen)) ??
    input.tenures[input.tenures.length - 1];
  const step = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const buttons = [...(box.current?.querySelectorAll<HTMLButtonElement>("button.tenure") ?? [])];
    buttons[buttons.indexOf(event.target as HTMLButtonElement) + by]?.focus();
  };
  return (
    <Panel
      id="ownership"
      title="Ownership"
      kind="timeline"
      aside={
        <Segmented
          label="Range"
          choices={(Object.keys(RANGES) as Range[]).map((range) => ({ value: range, label: range }))}
          value={input.range}
          onChange={onRange}
        />
      }
    >
      <div class="tl" ref={box}>
        <div class="tl-grid" aria-hidden="true">
          {layout.ticks.map(({ left, atMs }) => (
            <i key={atMs} style={{ left: `${left}px` }} />
          ))}
        </div>
        <div class="tl-owner" role="group" aria-label="Tenures, oldest first" onKeyDown={step}>
          {bars.map((bar) => (
            <TenureBar
              key={bar.tenure.fence}
              bar={bar}
              nowMs={input.nowMs}
              isShown={bar.tenure === shown}
              onChoose={() => setChosen(bar.tenure.fence)}
              onHover={(isOver) => setHovered(isOver ? bar.tenure.fence : null)}
            />
          ))}
          {remaining !== null && remaining.width > 0 && (
            <span
              class="tl-remaining"
              title="What is left of it if nobody renews it"
              style={{ left: `${remaining.left}px`, width: `${remaining.width}px` }}
            />
          )}
        </div>
        {lanes.length > 0 && (
          <ul class="tl-lanes" aria-label="Waiting and denied">
            {lanes.map(({ holder, spans }) => (
              <li key={holder}>
                <span class="tl-lane-name">{holder}</span>
                {spans.map((span) => (
                  <span
                    key={`${span.end}${span.left}`}
                    class="tl-span"
                    data-end={span.end}
                    data-point={span.width <= 3}
                    title={`${holder}, ${timeOf(span.atMs)}: ${span.label}`}
                    style={{ left: `${span.left}px`, width: `${span.width}px` }}
                  >
                    <span class="visually-hidden">
                      {timeOf(span.atMs)}: {span.label}.
                    </span>
                  </span>
                ))}
              </li>
            ))}
          </ul>
        )}
        {layout.hiddenLanes > 0 && (
          <p class="muted tl-more">and {layout.hiddenLanes} more that asked in vain</p>
        )}
        <div class="tl-axis" aria-hidden="true">
          {layout.ticks
            .filter(({ left }) => left < width - AXIS_LABEL_PX)
            .filter(
              ({ left }) =>
                left > layout.now + NOW_LABEL_PX || left < layout.now - AXIS_LABEL_PX - NOW_LABEL_PX,
            )
            .map(({ left, atMs }) => (
              <span key={atMs} style={{ left: `${left}px` }}>
                {layout.tickMs % 60_000 === 0 ? timeOf(atMs).replace(/:\d\d$/, "") : timeOf(atMs)}
              </span>
            ))}
        </div>
        <div class="tl-now" aria-hidden="true" style={{ transform: `translateX(${layout.now}px)` }} />
      </div>
      <Legend hasLanes={lanes.length > 0} hasBreaks={bars.some(({ breaks }) => breaks.length > 0)} />
      {shown !== undefined && <TenureFacts tenure={shown} nowMs={input.nowMs} />}
    </Panel>
  );
}

/** Narrower bars have no room for the holder's name. */
const NAME_PX = 60;

function TenureBar(props: {
  bar: Bar;
  nowMs: number;
  isShown: boolean;
  onChoose: () => void;
  onHover: (isOver: boolean) => void;
}) {
  const { tenure, left, width, isLive, renewals, breaks, isCut } = props.bar;
  const end = tenure.end ?? (isLive ? "live" : "unknown");
  const lastedMs = (tenure.toMs ?? props.nowMs) - tenure.fromMs;
  const lasted = `${durationInWords(lastedMs)}${isLive ? " so far" : ""}`;
  return (
    <button
      type="button"
      class="tenure"
      data-end={end}
      data-shown={props.isShown}
      data-cut={isCut}
      aria-pressed={props.isShown}
      aria-label={`${tenure.holder} ${lasted}, fence ${tenure.fence}, from ${timeOf(tenure.fromMs)}, ${isLive ? "still held" : end}`}
      style={{ left: `${left}px`, width: `${width}px` }}
      onClick={props.onChoose}
      onFocus={props.onChoose}
      onMouseEnter={() => props.onHover(true)}
      onMouseLeave={() => props.onHover(false)}
    >
      {width > NAME_PX && (
        <span class="tenure-text">
          <b>{tenure.holder}</b> <small>{lasted}</small>
        </span>
      )}
      {renewals.map((at) => (
        <i key={at} class="tenure-renewal" style={{ left: `${at}px` }} />
      ))}
      {breaks.map((at) => (
        <i key={at} class="tenure-break" style={{ left: `${at}px` }} />
      ))}
      <i class="tenure-end" data-end={end} />
    </button>
  );
}

/** From the store's clock to the reader's, in the reader's time zone. */
function clockShiftMs(storeMs: number): number {
  const hereMs = localMs(storeMs);
  return hereMs - storeMs - new Date(hereMs).getTimezoneOffset() * 60_000;
}

const ENDS = ["released", "handed over", "expired", "revoked", "superseded"] as const;

function Legend({ hasLanes, hasBreaks }: { hasLanes: boolean; hasBreaks: boolean }) {
  return (
    <ul class="legend" aria-label="How a tenure ended">
      {ENDS.map((end) => (
        <li key={end}>
          <i class="tenure-end" data-end={end} />
          {end}
        </li>
      ))}
      <li>
        <i class="tl-key" data-end="free" />
        free
      </li>
      {hasBreaks && (
        <li>
          <i class="tl-key" data-end="break" />
          asked back
        </li>
      )}
      {hasLanes && (
        <>
          <li>
            <i class="tl-key" data-end="waiting" />
            waited
          </li>
          <li>
            <i class="tl-key" data-end="denied" />
            denied
          </li>
        </>
      )}
    </ul>
  );
}

function TenureFacts({ tenure, nowMs }: { tenure: Tenure; nowMs: number }) {
  const { holder, fence, fromMs, toMs, end, renewedAtMs, brokenAtMs, waitedMs, purpose } = tenure;
  const facts: readonly Fact[] = [
    ["Holder", holder],
    ["Fence", fence],
    ["Purpose", purpose],
    ["From", timeOf(fromMs)],
    ["Until", toMs === null ? "now" : timeOf(toMs)],
    ["Lasted", durationInWords((toMs ?? nowMs) - fromMs)],
    ["Ended", end ?? "not yet"],
    ["Renewals", String(renewedAtMs.length)],
    ...brokenAtMs.slice(-1).map((at) => ["Asked back", timeOf(at)] as const),
    ["Waited", waitedMs === 0 ? "no" : durationInWords(waitedMs)],
  ];
  return (
    <div aria-live="polite">
      <Facts facts={facts} kind="across" />
    </div>
  );
}
