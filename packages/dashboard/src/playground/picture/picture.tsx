/** The picture of a run: beliefs over time, what the store and the guard say, and what goes wrong. */
import type { ScriptFault, Trace } from "@solehold/simulator";
import { useMemo, useRef } from "preact/hooks";
import { FenceNames, promiseOf } from "../state/words.ts";
import { Axis, LaneBands, LaneNames, Quiet } from "./backdrop.tsx";
import { Beliefs } from "./beliefs.tsx";
import { Faults } from "./faults.tsx";
import { AXIS, type Frame, frameOf, overlapsOf, tenuresOf } from "./geometry.ts";
import { Messages } from "./messages.tsx";
import { Records } from "./records.tsx";
import { Writes } from "./writes.tsx";

export interface PictureProps {
  readonly trace: Trace;
  /** Which key's beliefs and records are shown. */
  readonly shownKey: string;
  readonly width: number;
  readonly atMs: number;
  /** Those of the script, which can be moved; none for a run that nobody wrote. */
  readonly faults: readonly ScriptFault[];
  /** Null: a small picture that cannot be touched. */
  readonly onSeek: ((ms: number) => void) | null;
  readonly onFault: ((index: number, fault: ScriptFault) => void) | null;
}

/** Room for names: so much for each letter, and for what stands before and behind it. */
const NAME_PX = { letter: 9, rest: 48, least: 104, most: 150 };
/** With more messages than this only the remarkable ones are shown. */
const MOST_MESSAGES = 400;
const NARROW = 620;
const SMALL_EDGE = 6;

export function Picture(props: PictureProps) {
  const { trace, shownKey, width, atMs, faults, onSeek, onFault } = props;
  const small = onSeek === null;
  const frame = useMemo(
    () => frameOf(trace, width, small ? 8 : width < NARROW ? 0 : namesWidth(trace), small ? [] : faults),
    [trace, width, small, faults],
  );
  const fences = useMemo(() => new FenceNames(trace), [trace]);
  const beliefs = useMemo(() => trace.beliefs.filter(({ key }) => key === shownKey), [trace, shownKey]);
  const overlaps = useMemo(() => overlapsOf(beliefs, trace.endMs), [beliefs, trace]);
  const tenures = useMemo(
    () =>
      tenuresOf(
        trace.records.filter(({ key }) => key === shownKey),
        trace.endMs,
      ),
    [trace, shownKey],
  );
  const svg = useRef<SVGSVGElement>(null);
  const seek = (event: PointerEvent): void => {
    const left = svg.current?.getBoundingClientRect().left ?? 0;
    onSeek?.(frame.ms(event.clientX - left));
  };
  const drag = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    svg.current?.setPointerCapture(event.pointerId);
    seek(event);
  };
  // A small one has no labels above and below its lanes.
  const [top, bottom] = small ? [AXIS - SMALL_EDGE, laneEnd(frame) + SMALL_EDGE] : [0, frame.height];
  return (
    <svg
      ref={svg}
      class={small ? "picture small" : "picture"}
      width={width}
      height={bottom - top}
      viewBox={`0 ${top} ${width} ${bottom - top}`}
      aria-hidden="true"
      onPointerDown={small ? undefined : drag}
      onPointerMove={small ? undefined : (event) => (event.buttons & 1) === 1 && seek(event)}
    >
      <Patterns />
      <LaneBands frame={frame} trace={trace} />
      <Quiet frame={frame} small={small} />
      <Axis frame={frame} trace={trace} small={small} />
      <Messages
        frame={frame}
        messages={trace.messages}
        small={small || trace.messages.length > MOST_MESSAGES}
      />
      <Records frame={frame} tenures={tenures} fences={fences} lanes={trace.lanes} small={small} />
      <Beliefs
        frame={frame}
        beliefs={beliefs}
        overlaps={overlaps}
        trace={trace}
        fences={fences}
        small={small}
      />
      <Writes frame={frame} writes={trace.writes.filter(({ key }) => key === shownKey)} lanes={trace.lanes} />
      {!small && <Faults frame={frame} faults={frame.faults} onFault={onFault} />}
      {!small && <Future frame={frame} atMs={atMs} />}
      <ViolationMark frame={frame} trace={trace} small={small} />
      {!small && <LaneNames frame={frame} lanes={trace.lanes} />}
      {!small && <Playhead frame={frame} atMs={atMs} />}
    </svg>
  );
}

function laneEnd({ lanes, height }: Frame): number {
  const last = lanes.at(-1);
  return last === undefined ? height : last.top + last.height;
}

function namesWidth({ lanes }: Trace): number {
  const longest = Math.max(...lanes.map(({ name }) => name.length));
  return Math.min(NAME_PX.most, Math.max(NAME_PX.least, longest * NAME_PX.letter + NAME_PX.rest));
}

/** One set for all pictures of a page: equal ids are harmless as long as they mean the same. */
function Patterns() {
  return (
    <defs>
      <pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect class="hatch-line" width="2.5" height="7" />
      </pattern>
      <pattern
        id="hatch-bad"
        width="6"
        height="6"
        patternUnits="userSpaceOnUse"
        patternTransform="rotate(45)"
      >
        <rect class="hatch-bad-line" width="2" height="6" />
      </pattern>
    </defs>
  );
}

function Future({ frame, atMs }: { readonly frame: Frame; readonly atMs: number }) {
  const x = frame.x(atMs);
  const width = Math.max(0, frame.width - x);
  return <rect class="future" x={x} y={AXIS} width={width} height={frame.height - AXIS} />;
}

function Playhead({ frame, atMs }: { readonly frame: Frame; readonly atMs: number }) {
  const x = frame.x(atMs);
  return (
    <g class="playhead">
      <line x1={x} x2={x} y1={AXIS - 8} y2={frame.height} />
      <path d={`M${x - 6} ${AXIS - 16}h12v6l-6 7l-6 -7z`} />
    </g>
  );
}

function ViolationMark({
  frame,
  trace,
  small,
}: {
  readonly frame: Frame;
  readonly trace: Trace;
  readonly small: boolean;
}) {
  const { violation } = trace;
  if (violation === null) return null;
  const x = frame.x(Math.min(violation.atMs, trace.endMs));
  const end = x > frame.width * 0.6;
  return (
    <g class="violation">
      <line x1={x} x2={x} y1={AXIS} y2={frame.height} />
      {!small && (
        <text x={end ? x - 6 : x + 6} y={frame.height - 8} text-anchor={end ? "end" : "start"}>
          ✖ {frame.width < NARROW ? violation.oracle : promiseOf(violation.oracle)}
        </text>
      )}
    </g>
  );
}
