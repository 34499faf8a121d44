/** Where things are in the picture: time from left to right, a lane for each machine. Pure. */
import type { ScriptFault, Trace, TracedBelief, TracedRecord, TraceLane } from "@solehold/simulator";

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface LaneBox {
  readonly lane: TraceLane;
  readonly top: number;
  readonly height: number;
  /** The middle of the bars. */
  readonly barY: number;
}

export interface FaultBox {
  readonly fault: ScriptFault;
  /** Its place in the script. */
  readonly index: number;
  readonly y: number;
}

export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly span: Span;
  /** Where nothing happens for so long that it is drawn shorter than it is. */
  readonly quiet: readonly Span[];
  readonly lanes: readonly LaneBox[];
  readonly faults: readonly FaultBox[];
  readonly x: (ms: number) => number;
  readonly ms: (x: number) => number;
}

export const BAR = 32;
export const FAULT_ROW = 20;
export const AXIS = 26;
const LANE_PAD = 22;
const RIGHT = 14;

/** What is shown: from shortly before the first thing that happens to the end. */
export function spanOf({ events, endMs }: Trace): Span {
  const first = events.find(({ label }) => label !== "starts" && label !== "heals")?.atMs ?? 0;
  const rest = endMs - first;
  // A long wait before the first event says nothing.
  const fromMs = first > endMs * 0.1 ? Math.max(0, first - rest * 0.04) : 0;
  return { fromMs, toMs: Math.max(endMs, fromMs + 1) };
}

/** `left`: the room for names; 0 puts them above their lanes. */
export function frameOf(trace: Trace, width: number, left: number, faults: readonly ScriptFault[]): Frame {
  const span = spanOf(trace);
  const nameRow = left === 0 ? 16 : 0;
  const placed: FaultBox[] = [];
  const lanes: LaneBox[] = [];
  let top = AXIS;
  for (const lane of shownLanes(trace)) {
    const own = faults
      .map((fault, index) => ({ fault, index }))
      .filter(({ fault }) => fault.on === lane.name);
    const rows = rowsOf(own.map(({ fault }) => fault));
    const faultTop = top + LANE_PAD / 2 + nameRow;
    own.forEach(({ fault, index }, position) => {
      placed.push({ fault, index, y: faultTop + (rows.places[position] ?? 0) * FAULT_ROW });
    });
    const bars = lane.kind === "resource" ? BAR * 0.7 : BAR;
    const height = LANE_PAD + nameRow + rows.count * FAULT_ROW + bars;
    lanes.push({ lane, top, height, barY: top + height - LANE_PAD / 2 - bars / 2 });
    top += height;
  }
  const quiet = quietTimes(trace, span, faults);
  const scale = scaleOf(span, quiet, left, Math.max(1, width - left - RIGHT));
  return {
    width,
    height: top + (trace.violation === null ? 6 : 24),
    left,
    span,
    quiet,
    lanes,
    faults: placed,
    ...scale,
  };
}

/** So much of what is left to draw makes a time without events a quiet one, and so much of the width it gets. */
const QUIET_PART = 0.25;
const QUIET_WIDTH = 0.05;
const MOST_QUIET = 5;

/** The longest times without any event, in order. */
export function quietTimes(trace: Trace, span: Span, moved: readonly ScriptFault[]): readonly Span[] {
  // What people drag lies on an even scale.
  if (moved.length > 0) return [];
  const { beliefs, records, writes, faults, violation } = trace;
  const instants = [
    ...beliefs.flatMap(({ fromMs, toMs }) => [fromMs, toMs ?? span.toMs]),
    ...records.map(({ atMs }) => atMs),
    ...writes.map(({ atMs }) => atMs),
    ...faults.flatMap(({ atMs, untilMs }) => [atMs, untilMs]),
    ...(violation === null ? [] : [violation.atMs]),
    ...[span.fromMs, span.toMs],
  ]
    .map((ms) => Math.min(span.toMs, Math.max(span.fromMs, ms)))
    .sort((a, b) => a - b);
  const gaps = instants
    .map((toMs, index) => ({ fromMs: instants[index - 1] ?? toMs, toMs }))
    .sort((a, b) => lengthOf(b) - lengthOf(a));
  const quiet: Span[] = [];
  let restMs = lengthOf(span);
  for (const gap of gaps.slice(0, MOST_QUIET)) {
    if (lengthOf(gap) < restMs * QUIET_PART) break;
    // A little on either side stays, so that nothing touches the mark.
    const edgeMs = (restMs - lengthOf(gap)) * 0.04;
    restMs -= lengthOf(gap) - edgeMs * 2;
    quiet.push({ fromMs: gap.fromMs + edgeMs, toMs: gap.toMs - edgeMs });
  }
  return quiet.sort((a, b) => a.fromMs - b.fromMs);
}

function lengthOf({ fromMs, toMs }: Span): number {
  return toMs - fromMs;
}

/** From time to place and back: even, but for quiet times. */
function scaleOf(span: Span, quiet: readonly Span[], left: number, width: number): Pick<Frame, "x" | "ms"> {
  const busyMs = quiet.reduce((rest, each) => rest - lengthOf(each), lengthOf(span));
  const busyScale = (width * (1 - quiet.length * QUIET_WIDTH)) / Math.max(busyMs, 1e-6);
  const parts: { readonly fromMs: number; readonly x: number; readonly scale: number }[] = [];
  let [x, atMs] = [left, span.fromMs];
  for (const each of quiet) {
    parts.push({ fromMs: atMs, x, scale: busyScale });
    x += (each.fromMs - atMs) * busyScale;
    parts.push({ fromMs: each.fromMs, x, scale: (width * QUIET_WIDTH) / lengthOf(each) });
    x += width * QUIET_WIDTH;
    atMs = each.toMs;
  }
  const last = { fromMs: atMs, x, scale: busyScale };
  parts.push(last);
  return {
    x: (ms) => {
      const part = parts.findLast((each) => each.fromMs <= ms) ?? parts[0] ?? last;
      return part.x + (ms - part.fromMs) * part.scale;
    },
    ms: (px) => {
      const part = parts.findLast((each) => each.x <= px) ?? parts[0] ?? last;
      return Math.min(span.toMs, Math.max(span.fromMs, part.fromMs + (px - part.x) / part.scale));
    },
  };
}

/** A resource to which nobody writes needs no lane. */
function shownLanes({ lanes, writes }: Trace): readonly TraceLane[] {
  return lanes.filter(({ kind }) => kind !== "resource" || writes.length > 0);
}

/** Faults that overlap are drawn one above the other. */
function rowsOf(faults: readonly ScriptFault[]): {
  readonly count: number;
  readonly places: readonly number[];
} {
  const ends: number[] = [];
  const places = faults.map(({ atMs, forMs }) => {
    const free = ends.findIndex((end) => end <= atMs);
    const place = free < 0 ? ends.length : free;
    ends[place] = atMs + forMs;
    return place;
  });
  return { count: ends.length, places };
}

export interface Overlap extends Span {
  readonly one: TracedBelief;
  readonly other: TracedBelief;
}

/** Where two believe at once in the same key. */
export function overlapsOf(beliefs: readonly TracedBelief[], endMs: number): readonly Overlap[] {
  return beliefs.flatMap((one, index) =>
    beliefs.slice(index + 1).flatMap((other) => {
      const fromMs = Math.max(one.fromMs, other.fromMs);
      const toMs = Math.min(one.toMs ?? endMs, other.toMs ?? endMs);
      return one.key === other.key && toMs - fromMs > 1 ? [{ one, other, fromMs, toMs }] : [];
    }),
  );
}

/** One grant in the store's lane: from its first write to its end. */
export interface Tenure extends Span {
  readonly record: TracedRecord;
  /** When it runs out; before `toMs` if nobody took it for a while. */
  readonly endsMs: number;
  /** When it was renewed. */
  readonly renewals: readonly number[];
}

export function tenuresOf(records: readonly TracedRecord[], endMs: number): readonly Tenure[] {
  const tenures: Tenure[] = [];
  records.forEach((record, index) => {
    if (record.state === "absent") return;
    const toMs = records[index + 1]?.atMs ?? endMs;
    const before = tenures.at(-1);
    const same = before !== undefined && before.toMs === record.atMs && isSameGrant(before.record, record);
    const { atMs: fromMs, endsMs } = record;
    if (same)
      tenures[tenures.length - 1] = {
        ...before,
        record,
        toMs,
        // An end that is taken back later was in force until then.
        endsMs: Math.max(endsMs, Math.min(before.endsMs, fromMs)),
        renewals: [...before.renewals, fromMs],
      };
    else tenures.push({ record, fromMs, toMs, endsMs, renewals: [] });
  });
  return tenures;
}

function isSameGrant(a: TracedRecord, b: TracedRecord): boolean {
  return a.fence === b.fence && a.state === b.state && a.holder === b.holder;
}

const TICK_PX = 70;

/** Round steps for the axis, so that labels have room; where nothing happens there are none. */
export function ticksOf({ span, quiet, x, width, left }: Frame): readonly number[] {
  const lengthMs = quiet.reduce((rest, each) => rest - lengthOf(each), lengthOf(span));
  const rough = lengthMs / Math.max(2, (width - left) / TICK_PX);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? power * 10;
  const busy = [...quiet, { fromMs: span.toMs, toMs: span.toMs }].map(({ fromMs }, index) => ({
    fromMs: quiet[index - 1]?.toMs ?? span.fromMs,
    toMs: fromMs,
  }));
  const ticks = busy.flatMap(({ fromMs, toMs }) => {
    const first = Math.ceil(fromMs / step);
    return Array.from(
      { length: Math.max(0, Math.floor(toMs / step) - first + 1) },
      (_, index) => (first + index) * step,
    );
  });
  return ticks.filter((ms, index) => index === 0 || x(ms) - x(ticks[index - 1] ?? ms) > TICK_PX / 2);
}
