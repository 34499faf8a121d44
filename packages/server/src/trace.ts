/**
 * W3C trace context: a request that brings a trace keeps it, one that does not gets a new one; the answer
 * names the trace and the server's own span in it.
 */
import type { Env } from "solehold";

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

export function traceOf(header: string | string[] | undefined, env: Env): Trace {
  if (header === undefined) return { traceId: hex(env, 16), parentId: null, sampled: false };
  const match = typeof header === "string" ? TRACEPARENT.exec(header) : null;
  const [, traceId = NO_TRACE, parentId = NO_SPAN, flags = "00"] = match ?? [];
  if (traceId === NO_TRACE || parentId === NO_SPAN)
    return { traceId: hex(env, 16), parentId: null, sampled: false };
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function traceparent({ traceId, sampled }: Trace, spanId: string): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

export function newSpanId(env: Env): string {
  return hex(env, 8);
}

function hex(env: Env, bytes: number): string {
  return Buffer.from(env.randomBytes(bytes)).toString("hex");
}
