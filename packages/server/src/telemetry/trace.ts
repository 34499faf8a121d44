/**
 * W3C trace context: a request that brings a trace keeps it, one that does not gets a new one; the answer
 * names the trace and the server's own span in it.
 */
import type { Env, RandomIds } from "solehold/internal";

export interface Trace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The caller's span; null when it brought none. */
  readonly parentId: string | null;
  readonly sampled: boolean;
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);
const SPAN_BYTES = 8;

/** `traces` are hexadecimal. */
export function traceOf(header: string | string[] | undefined, traces: RandomIds): Trace {
  if (header === undefined) return newTrace(traces);
  const match = typeof header === "string" ? TRACEPARENT.exec(header) : null;
  const [, traceId = NO_TRACE, parentId = NO_SPAN, flags = "00"] = match ?? [];
  if (traceId === NO_TRACE || parentId === NO_SPAN) return newTrace(traces);
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function traceparent({ traceId, sampled }: Trace, spanId: string): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

function newTrace(traces: RandomIds): Trace {
  return { traceId: traces.next(), parentId: null, sampled: false };
}

export function newSpanId(env: Env): string {
  return Buffer.from(env.randomBytes(SPAN_BYTES)).toString("hex");
}
