/** What is the case at one moment of a trace. */
import type { Trace, TracedBelief, TracedEvent, TracedRecord, TracedWrite } from "@solehold/simulator";
import { type FenceNames, sentenceOf } from "./words.ts";

export interface Step {
  readonly atMs: number;
  readonly who: string;
  readonly text: string;
  readonly isViolation: boolean;
}

/** The events that a reader can follow, in order. */
export function stepsOf(trace: Trace, key: string, fences: FenceNames): readonly Step[] {
  const isOther = trace.expectations === null ? isOfAnother(key) : namesAnother(trace.keys, key);
  const steps = trace.events.flatMap((event): Step[] => {
    if (isOther(event)) return [];
    const text = sentenceOf(event, fences);
    return text === null
      ? []
      : [{ atMs: event.atMs, who: event.who, text, isViolation: event.label === "VIOLATION" }];
  });
  const { violation, endMs } = trace;
  if (violation === null || violation.atMs <= endMs) return steps;
  const late = {
    atMs: endMs,
    who: "!",
    text: `Broken, found when everything was over: ${fences.in(violation.message)}`,
    isViolation: true,
  };
  return [...steps, late];
}

/** An entry of an audit ends with its key; there may be very many keys. */
function isOfAnother(key: string): (event: TracedEvent) => boolean {
  return ({ text }) => !text.endsWith(` [${key}]`);
}

/** An event of a run says somewhere which key it is about, if it is about one. */
function namesAnother(keys: readonly string[], key: string): (event: TracedEvent) => boolean {
  const others = keys.filter((each) => each !== key).map((other) => new RegExp(`\\b${escaped(other)}\\b`));
  return ({ text }) => others.some((other) => other.test(text));
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** The place of the last step at or before this time; -1 before the first. */
export function stepAt(steps: readonly Step[], atMs: number): number {
  let last = -1;
  for (let index = 0; index < steps.length && (steps[index]?.atMs ?? 0) <= atMs + 1e-6; index += 1)
    last = index;
  return last;
}

export interface NodeState {
  readonly name: string;
  readonly belief: TracedBelief | null;
  /** What goes wrong with it now. */
  readonly troubles: readonly string[];
}

export interface Moment {
  readonly nodes: readonly NodeState[];
  readonly record: TracedRecord | null;
  /** The highest fence that the guard has accepted. */
  readonly highest: string | null;
  readonly lastWrite: TracedWrite | null;
  readonly believers: number;
}

const TROUBLES: Readonly<Record<string, string>> = {
  pause: "stopped",
  suspend: "asleep",
  cut: "cut off",
  clogged: "held up",
  crashes: "crashed",
  "disk full": "disk full",
  "clock rate": "clock drifts",
};

export function momentOf(trace: Trace, key: string, atMs: number): Moment {
  const nodes = trace.lanes
    .filter(({ kind }) => kind === "node" || kind === "server" || kind === "store")
    .map(({ name }): NodeState => {
      const belief = trace.beliefs.findLast(
        (each) =>
          each.who === name &&
          each.key === key &&
          each.fromMs <= atMs &&
          (each.toMs ?? trace.endMs + 1) > atMs,
      );
      const troubles = trace.faults
        .filter((fault) => fault.who === name && fault.atMs <= atMs && fault.untilMs > atMs)
        .flatMap(({ kind }) => TROUBLES[kind] ?? []);
      return { name, belief: belief ?? null, troubles: [...new Set(troubles)] };
    });
  const writes = trace.writes.filter((each) => each.key === key && each.atMs <= atMs);
  const accepted = writes.filter((each) => each.accepted).map(({ fence }) => BigInt(fence));
  const highest = accepted.reduce<bigint | null>(
    (top, each) => (top === null || each > top ? each : top),
    null,
  );
  return {
    nodes,
    record: trace.records.findLast((each) => each.key === key && each.atMs <= atMs) ?? null,
    highest: highest === null ? null : String(highest),
    lastWrite: writes.at(-1) ?? null,
    believers: nodes.filter(({ belief }) => belief !== null).length,
  };
}
