/** Where everything on a lease's time-line stands, in pixels. Pure. */
import { type Denial, durationInWords, type Tenure } from "solehold/browser";

export interface Waiting {
  readonly holder: string;
  readonly fromMs: number;
}

export interface TimelineInput {
  readonly tenures: readonly Tenure[];
  readonly denials: readonly Denial[];
  /** Those that wait now. */
  readonly waiting: readonly Waiting[];
  /** Until when the live tenure lasts if nobody renews it; null when none is live. */
  readonly expiresAtMs: number | null;
  readonly nowMs: number;
  readonly range: Range;
  readonly width: number;
  /** What to add to an instant for the reader's own clock and time zone: marks stand at its round times. */
  readonly clockShiftMs: number;
}

export const RANGES = {
  auto: 0,
  "5 min": 300_000,
  "1 h": 3_600_000,
  "6 h": 21_600_000,
  "24 h": 86_400_000,
  all: 0,
} as const;
export type Range = keyof typeof RANGES;

export interface Bar {
  readonly tenure: Tenure;
  readonly left: number;
  readonly width: number;
  readonly isLive: boolean;
  readonly renewals: readonly number[];
  /** When an operator asked for it back. */
  readonly breaks: readonly number[];
  /** It began before the range. */
  readonly isCut: boolean;
}

export interface WaitSpan {
  readonly left: number;
  readonly width: number;
  readonly end: "granted" | "denied" | "waiting";
  readonly label: string;
  /** When it ended. */
  readonly atMs: number;
}

export interface Lane {
  readonly holder: string;
  readonly spans: readonly WaitSpan[];
}

export interface TimelineLayout {
  readonly bars: readonly Bar[];
  /** What is left of the live tenure. */
  readonly remaining: { readonly left: number; readonly width: number } | null;
  readonly lanes: readonly Lane[];
  readonly hiddenLanes: number;
  readonly ticks: readonly { readonly left: number; readonly atMs: number }[];
  /** How far apart the ticks are. */
  readonly tickMs: number;
  readonly now: number;
  readonly fromMs: number;
  readonly toMs: number;
}

const MOST_LANES = 6;
const AUTO_TENURES = 8;
/** So much room makes a tenure's holder readable. */
const TENURE_PX = 100;
const LEAST_TICK_PX = 96;
const SECOND = 1_000;
const STEPS_MS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800,
  604_800,
].map((seconds) => seconds * SECOND);

export function layoutTimeline(input: TimelineInput): TimelineLayout {
  const { tenures, nowMs, expiresAtMs, width } = input;
  const { fromMs, toMs } = rangeOf(input);
  const scale = width / Math.max(1, toMs - fromMs);
  const at = (ms: number): number => (Math.min(toMs, Math.max(fromMs, ms)) - fromMs) * scale;
  const bars = tenures
    .filter(({ fromMs: begin, toMs: end }) => begin < toMs && (end ?? nowMs) >= fromMs)
    .map((tenure) => barOf(tenure, input, at, fromMs));
  const isRemaining = expiresAtMs !== null && expiresAtMs > nowMs;
  const lanes = lanesOf(input, at, fromMs);
  const tickMs = tickStep(toMs - fromMs, width);
  return {
    bars,
    remaining: isRemaining ? { left: at(nowMs), width: at(expiresAtMs) - at(nowMs) } : null,
    lanes: lanes.slice(0, MOST_LANES),
    hiddenLanes: Math.max(0, lanes.length - MOST_LANES),
    ticks: ticksOf(fromMs, toMs, tickMs, input.clockShiftMs).map((atMs) => ({ atMs, left: at(atMs) })),
    tickMs,
    now: at(nowMs),
    fromMs,
    toMs,
  };
}

function rangeOf({ tenures, denials, nowMs, expiresAtMs, range, width }: TimelineInput): {
  readonly fromMs: number;
  readonly toMs: number;
} {
  const span = RANGES[range];
  const end = Math.max(nowMs, expiresAtMs ?? 0);
  if (span > 0) return { fromMs: nowMs - span, toMs: Math.min(end, nowMs + span / 4) + span * 0.03 };
  const most = Math.max(3, Math.min(AUTO_TENURES, Math.floor(width / TENURE_PX)));
  const first = range === "all" ? tenures[0] : tenures[Math.max(0, tenures.length - most)];
  const starts = [...(first === undefined ? [] : [first.fromMs - first.waitedMs])];
  if (range === "all" || first === undefined) starts.push(...denials.slice(0, 1).map(({ atMs }) => atMs));
  const fromMs = Math.min(nowMs - 30 * SECOND, ...starts);
  const total = Math.max(nowMs - fromMs, 1);
  // The future takes at most a third, however long the lease still lasts.
  const toMs = Math.min(end, nowMs + total / 2);
  return { fromMs: fromMs - total * 0.02, toMs: toMs + total * 0.03 };
}

function barOf(
  tenure: Tenure,
  { nowMs, expiresAtMs }: TimelineInput,
  at: (ms: number) => number,
  fromMs: number,
): Bar {
  const left = at(tenure.fromMs);
  const isLive = tenure.toMs === null && expiresAtMs !== null && expiresAtMs > nowMs;
  const marks = (instants: readonly number[]): readonly number[] =>
    instants.filter((ms) => ms >= fromMs).map((ms) => at(ms) - left);
  const end = tenure.toMs ?? (isLive ? nowMs : Math.min(nowMs, expiresAtMs ?? nowMs));
  return {
    tenure,
    left,
    width: Math.max(2, at(end) - left),
    isLive,
    renewals: marks(tenure.renewedAtMs),
    breaks: marks(tenure.brokenAtMs),
    isCut: tenure.fromMs < fromMs,
  };
}

/** A waiter's attempts are decided one by one; those of one wait began at one instant, near enough. */
export const SAME_WAIT_MS = 1_500;

/** Denials that stand for something: not those of a wait that went on. */
function lastDenials({ tenures, denials, waiting }: TimelineInput): TimelineInput["denials"] {
  const waits = [
    ...tenures
      .filter(({ waitedMs }) => waitedMs > 0)
      .map(({ holder, fromMs, waitedMs }) => ({ holder, sinceMs: fromMs - waitedMs, untilMs: fromMs })),
    ...denials
      .filter(({ waitedMs }) => waitedMs > 0)
      .map(({ holder, atMs, waitedMs }) => ({ holder, sinceMs: atMs - waitedMs, untilMs: atMs })),
    ...waiting.map(({ holder, fromMs }) => ({ holder, sinceMs: fromMs, untilMs: Number.POSITIVE_INFINITY })),
  ];
  return denials.filter(({ holder, atMs, waitedMs }) => {
    const sinceMs = atMs - waitedMs;
    return !waits.some(
      (wait) =>
        wait.holder === holder && wait.untilMs > atMs && Math.abs(wait.sinceMs - sinceMs) < SAME_WAIT_MS,
    );
  });
}

/** One lane for each that waited or asked in vain, the latest first. */
function lanesOf(input: TimelineInput, at: (ms: number) => number, fromMs: number): readonly Lane[] {
  const { tenures, waiting, nowMs } = input;
  const lanes = new Map<string, { lastMs: number; spans: WaitSpan[] }>();
  const add = (holder: string, beginMs: number, endMs: number, end: WaitSpan["end"], label: string): void => {
    if (endMs < fromMs) return;
    const lane = lanes.get(holder) ?? { lastMs: 0, spans: [] };
    const left = at(beginMs);
    lane.spans.push({ left, width: Math.max(2, at(endMs) - left), end, label, atMs: endMs });
    lane.lastMs = Math.max(lane.lastMs, endMs);
    lanes.set(holder, lane);
  };
  for (const { holder, fromMs: grantedMs, waitedMs } of tenures)
    if (waitedMs > 0)
      add(
        holder,
        grantedMs - waitedMs,
        grantedMs,
        "granted",
        `waited ${durationInWords(waitedMs)}, then granted`,
      );
  for (const { holder, atMs, waitedMs } of lastDenials(input))
    add(
      holder,
      atMs - waitedMs,
      atMs,
      "denied",
      waitedMs > 0 ? `waited ${durationInWords(waitedMs)} in vain` : "denied",
    );
  for (const { holder, fromMs: sinceMs } of waiting)
    add(holder, sinceMs, nowMs, "waiting", `waits for ${durationInWords(nowMs - sinceMs)} now`);
  return [...lanes]
    .sort(([, a], [, b]) => b.lastMs - a.lastMs)
    .map(([holder, { spans }]) => ({ holder, spans }));
}

function tickStep(spanMs: number, width: number): number {
  const most = Math.max(2, Math.floor(width / LEAST_TICK_PX));
  return STEPS_MS.find((each) => spanMs / each <= most) ?? Math.ceil(spanMs / most);
}

function ticksOf(fromMs: number, toMs: number, stepMs: number, shiftMs: number): readonly number[] {
  const ticks: number[] = [];
  const first = Math.ceil((fromMs + shiftMs) / stepMs) * stepMs - shiftMs;
  for (let tick = first; tick < toMs; tick += stepMs) ticks.push(tick);
  return ticks;
}
