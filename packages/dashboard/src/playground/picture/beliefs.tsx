/** The bars of belief, and where two of them are at the same time. */
import type { Trace, TracedBelief } from "@solehold/simulator";
import type { FenceNames } from "../state/words.ts";
import { colourOf } from "./backdrop.tsx";
import { BAR, type Frame, type Overlap } from "./geometry.ts";

export interface BeliefsProps {
  readonly frame: Frame;
  readonly beliefs: readonly TracedBelief[];
  readonly overlaps: readonly Overlap[];
  readonly trace: Trace;
  readonly fences: FenceNames;
  readonly small: boolean;
}

/** An interval that is shorter than this is not worth a mark of its own. */
const LEAST_LATE_MS = 20;
const LETTER_PX = 7.4;
const BOTH_PX = 100;

export function Beliefs({ frame, beliefs, overlaps, trace, fences, small }: BeliefsProps) {
  const promised = trace.expectations?.exclusive ?? true;
  return (
    <g>
      {beliefs.map((belief) => (
        <Belief
          key={`${belief.who} ${belief.fence} ${belief.fromMs}`}
          {...{ frame, belief, trace, fences, small }}
        />
      ))}
      {overlaps.map(({ one, other, fromMs, toMs }) => {
        const boxes = frame.lanes.filter(({ lane }) => lane.name === one.who || lane.name === other.who);
        const [first, last] = [boxes[0], boxes.at(-1)];
        if (first === undefined || last === undefined) return null;
        const x = frame.x(fromMs);
        const y = first.barY - BAR / 2 - 4;
        const width = Math.max(3, frame.x(toMs) - x);
        return (
          <g key={`${one.who} ${other.who} ${fromMs}`} class={promised ? "overlap" : "overlap allowed"}>
            <rect x={x} y={y} width={width} height={last.barY + BAR / 2 + 4 - y} rx="4" />
            {!small && width > BOTH_PX && (
              <text x={x + width / 2} y={(first.barY + last.barY) / 2 + 4} text-anchor="middle">
                both believe
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

function Belief({
  frame,
  belief,
  trace,
  fences,
  small,
}: Omit<BeliefsProps, "beliefs" | "overlaps"> & { readonly belief: TracedBelief }) {
  const box = frame.lanes.find(({ lane }) => lane.name === belief.who);
  if (box === undefined) return null;
  const from = frame.x(belief.fromMs);
  const endMs = belief.toMs ?? trace.endMs;
  const width = Math.max(3, frame.x(endMs) - from);
  const y = box.barY - BAR / 2;
  const fence = `fence ${fences.of(belief.fence)}`;
  const holds = trace.expectations === null ? "holds it" : "believes";
  const labels = small ? [belief.who] : [`${belief.who} ${holds} · ${fence}`, fence];
  const label = labels.find((each) => width > each.length * LETTER_PX + 16);
  const lateMs = belief.toMs === null ? 0 : (belief.abortedMs ?? trace.endMs) - belief.toMs;
  return (
    <g class={`belief ${colourOf(belief.who, trace.lanes)}`}>
      {lateMs > LEAST_LATE_MS && (
        <rect
          class={trace.violation === null ? "overdue" : "overdue late"}
          x={frame.x(endMs)}
          y={y + 5}
          width={Math.max(2, frame.x(endMs + lateMs) - frame.x(endMs))}
          height={BAR - 10}
        />
      )}
      <rect class="bar" x={from} y={y} width={width} height={BAR} rx="6" />
      {belief.toMs === null && <path class="goes-on" d={`M${from + width - 9} ${y + 8}l6 6l-6 6`} />}
      {label !== undefined && (
        <text x={from + 10} y={box.barY + 5}>
          {label}
        </text>
      )}
    </g>
  );
}
