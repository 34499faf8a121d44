/**
 * A run as data: who believed what and when, what was sent, what the store and the guard said, what went wrong.
 * `solehold sim --trace` writes it and the playground shows it. Times are the world's, in milliseconds; fences are
 * decimal text, because JSON has no large integers.
 */
import type { Expectations } from "../config.ts";
import type { Violation } from "../result.ts";

export const TRACE_FORMAT = "solehold-trace";
export const TRACE_VERSION = 1;

export interface TraceLane {
  readonly name: string;
  readonly kind: "node" | "server" | "store" | "resource";
  /** How fast its clock runs at the start: 1 is the world's speed. */
  readonly rate: number;
}

/** A holder that believed in a grant. */
export interface TracedBelief {
  /** The lane. */
  readonly who: string;
  readonly key: string;
  readonly fence: string;
  readonly fromMs: number;
  /** Null if it still believes at the end of the trace. */
  readonly toMs: number | null;
  /** When its signal came. Later than `toMs` if a timer was late or its machine slept: to ask the lease shows it before. */
  readonly abortedMs: number | null;
  /** Why it ended: expired, released, unreachable, ... */
  readonly end: string | null;
}

/** What the store holds under a key, from this moment on. */
export interface TracedRecord {
  readonly atMs: number;
  readonly key: string;
  readonly state: "held" | "released" | "revoked" | "absent";
  readonly holder: string;
  readonly fence: string;
  /** When it runs out, as far as the store's clock goes on as it does. */
  readonly endsMs: number;
  readonly successor: string | null;
}

/** A write that reached what the lease protects. */
export interface TracedWrite {
  readonly atMs: number;
  readonly who: string;
  readonly key: string;
  readonly fence: string;
  readonly accepted: boolean;
}

export interface TracedMessage {
  readonly from: string;
  readonly to: string;
  readonly label: string;
  readonly sentMs: number;
  /** Null if it never arrived. */
  readonly arrivedMs: number | null;
}

export interface TracedFault {
  readonly who: string;
  readonly kind: string;
  readonly text: string;
  readonly atMs: number;
  /** The same as `atMs` for what happens in an instant. */
  readonly untilMs: number;
}

export interface TracedEvent {
  readonly atMs: number;
  readonly who: string;
  readonly label: string;
  readonly text: string;
}

export interface Trace {
  readonly format: typeof TRACE_FORMAT;
  readonly version: typeof TRACE_VERSION;
  readonly title: string;
  readonly ttlMs: number;
  readonly endMs: number;
  /** The wall time of 0, where that means something; null in a simulated world. */
  readonly originMs: number | null;
  readonly keys: readonly string[];
  readonly lanes: readonly TraceLane[];
  readonly beliefs: readonly TracedBelief[];
  readonly records: readonly TracedRecord[];
  readonly writes: readonly TracedWrite[];
  readonly messages: readonly TracedMessage[];
  readonly faults: readonly TracedFault[];
  readonly events: readonly TracedEvent[];
  readonly violation: Violation | null;
  /** What may be asked of this world; null where nothing is known about its clocks, as for an audit. */
  readonly expectations: Expectations | null;
}

/** The trace in this text; the error says what is wrong with it. */
export function parseTrace(text: string): Trace {
  const value = JSON.parse(text) as Partial<Trace> | null;
  if (value?.format !== TRACE_FORMAT)
    throw new RangeError(
      `this is no trace: its "format" is ${JSON.stringify(value?.format)}, not "${TRACE_FORMAT}"`,
    );
  if (value.version !== TRACE_VERSION)
    throw new RangeError(
      `"version" is ${JSON.stringify(value.version)}, and only ${TRACE_VERSION} is known: write it anew with solehold sim --trace`,
    );
  for (const list of LISTS)
    if (!Array.isArray(value[list]))
      throw new RangeError(`"${list}" must be a list, got ${typeof value[list]}`);
  if (typeof value.endMs !== "number" || typeof value.ttlMs !== "number")
    throw new RangeError(`"endMs" and "ttlMs" must be numbers, got ${value.endMs} and ${value.ttlMs}`);
  return value as Trace;
}

const LISTS = ["keys", "lanes", "beliefs", "records", "writes", "messages", "faults", "events"] as const;
