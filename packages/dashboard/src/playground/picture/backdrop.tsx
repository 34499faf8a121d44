/** What is behind the bars: lanes, names and the time. */
import type { Trace, TraceLane } from "@solehold/simulator";
import { seconds, timeIn } from "../state/words.ts";
import { AXIS, type Frame, ticksOf } from "./geometry.ts";

/** Half of a label, and of that of a quiet time. */
const SECONDS_PX = 16;
const CLOCK_PX = 30;
const QUIET_PX = 22;

/** The colour of a node: a class, so that light and dark are the style sheet's. */
export function colourOf(name: string, lanes: readonly TraceLane[]): string {
  const index = lanes.filter(({ kind }) => kind === "node").findIndex((lane) => lane.name === name);
  return index < 0 ? "n-other" : `n${index % 8}`;
}

/** Faults that stop a whole machine; others only mark it. */
const FROZEN: ReadonlySet<string> = new Set(["pause", "suspend", "crashes"]);

export function LaneBands({ frame, trace }: { readonly frame: Frame; readonly trace: Trace }) {
  return (
    <g>
      {frame.lanes.map(({ lane, top, height }, index) => (
        <rect
          key={lane.name}
          class={index % 2 === 0 ? "lane even" : "lane odd"}
          x={0}
          y={top}
          width={frame.width}
          height={height}
        />
      ))}
      {trace.faults.flatMap((fault, index) => {
        const box = frame.lanes.find(({ lane }) => lane.name === fault.who);
        if (box === undefined || !FROZEN.has(fault.kind)) return [];
        const from = frame.x(fault.atMs);
        const width = Math.max(2, frame.x(Math.min(fault.untilMs, trace.endMs)) - from);
        return [<rect key={index} class="frozen" x={from} y={box.top} width={width} height={box.height} />];
      })}
    </g>
  );
}

export function LaneNames({ frame, lanes }: { readonly frame: Frame; readonly lanes: readonly TraceLane[] }) {
  return (
    <g class="names">
      {frame.lanes.map(({ lane, top, height }) => {
        const node = lane.kind === "node";
        const above = frame.left === 0;
        const y = above ? top + 14 : top + height / 2;
        const drifts = lane.rate.toFixed(2) !== "1.00";
        return (
          <g key={lane.name}>
            {node && (
              <circle
                class={`dot ${colourOf(lane.name, lanes)}`}
                cx={above ? 12 : 18}
                cy={above ? y - 4 : y}
                r={above ? 5 : 8}
              />
            )}
            <text
              class={`name ${lane.kind}`}
              x={node ? (above ? 22 : 34) : above ? 6 : 12}
              y={above ? y : y + 5}
            >
              {shortened(lane.name, above ? 30 : 11)}
            </text>
            {drifts && !above && (
              <text class="rate" x={node ? 34 : 12} y={y + 19}>
                clock {lane.rate.toFixed(2)}×
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

export function Axis({
  frame,
  trace,
  small,
}: {
  readonly frame: Frame;
  readonly trace: Trace;
  readonly small: boolean;
}) {
  const labelPx = trace.originMs === null ? SECONDS_PX : CLOCK_PX;
  return (
    <g class="axis">
      {ticksOf(frame).map((ms) => {
        const x = frame.x(ms);
        return (
          <g key={ms}>
            <line x1={x} x2={x} y1={AXIS} y2={frame.height} />
            {!small && x > frame.left - 1 && x < frame.width - labelPx && !isNearQuiet(x, frame, labelPx) && (
              <text x={x} y={AXIS - 10} text-anchor={x < 20 ? "start" : "middle"}>
                {trace.originMs === null ? `${Number((ms / 1_000).toFixed(3))} s` : timeIn(trace, ms)}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

/** Its label would lie under that of a quiet time. */
function isNearQuiet(x: number, frame: Frame, labelPx: number): boolean {
  return frame.quiet.some(
    ({ fromMs, toMs }) => Math.abs(x - (frame.x(fromMs) + frame.x(toMs)) / 2) < labelPx + QUIET_PX,
  );
}

/** Where nothing happens, drawn shorter than it lasts. */
export function Quiet({ frame, small }: { readonly frame: Frame; readonly small: boolean }) {
  return (
    <g class="quiet">
      {frame.quiet.map(({ fromMs, toMs }) => {
        const [from, to] = [frame.x(fromMs), frame.x(toMs)];
        return (
          <g key={fromMs}>
            <rect x={from} y={AXIS} width={to - from} height={frame.height - AXIS} />
            <line x1={from} x2={from} y1={AXIS} y2={frame.height} />
            <line x1={to} x2={to} y1={AXIS} y2={frame.height} />
            {!small && (
              <text x={(from + to) / 2} y={AXIS - 10} text-anchor="middle">
                … {seconds(toMs - fromMs, toMs - fromMs < 10_000 ? 1 : 0)}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}
