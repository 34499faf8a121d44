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
  const first = events.find(({ label }) => label !== "starts")?.atMs ?? 0;
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
  const inner = Math.max(1, width - left - RIGHT);
  const scale = inner / (span.toMs - span.fromMs);
  return {
    width,
    height: top + (trace.violation === null ? 6 : 24),
    left,
    span,
    lanes,
    faults: placed,
    x: (ms) => left + (ms - span.fromMs) * scale,
    ms: (x) => Math.min(span.toMs, Math.max(span.fromMs, span.fromMs + (x - left) / scale)),
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
        endsMs,
        renewals: [...before.renewals, fromMs],
      };
    else tenures.push({ record, fromMs, toMs, endsMs, renewals: [] });
  });
  return tenures;
}

function isSameGrant(a: TracedRecord, b: TracedRecord): boolean {
  return a.fence === b.fence && a.state === b.state && a.holder === b.holder;
}

/** Round steps for the axis, so that labels have room. */
export function ticksOf({ span, width, left }: Pick<Frame, "span" | "width" | "left">): readonly number[] {
  const lengthMs = span.toMs - span.fromMs;
  const most = Math.max(2, (width - left) / 70);
  const rough = lengthMs / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? power * 10;
  const ticks: number[] = [];
  for (let at = Math.ceil(span.fromMs / step) * step; at <= span.toMs; at += step) ticks.push(at);
  return ticks;
}
