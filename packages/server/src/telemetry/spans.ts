/**
 * OpenTelemetry spans through its API alone: they cost next to nothing until the process that embeds this
 * server registers an SDK.
 */
import { ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import type { Env } from "solehold";
import { newSpanId, type Trace, traceparent } from "../trace.ts";

export interface RequestSpan {
  /** For the answer. */
  readonly traceparent: string;
  end(status: number): void;
}

const tracer = trace.getTracer("solehold");
const NO_SPAN = "0".repeat(16);

export function startSpan(name: string, incoming: Trace, env: Env): RequestSpan {
  const { traceId, parentId, sampled } = incoming;
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  const parent =
    parentId === null
      ? ROOT_CONTEXT
      : trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: parentId, traceFlags, isRemote: true });
  const span = tracer.startSpan(name, { kind: SpanKind.SERVER }, parent);
  return {
    traceparent: traceparent(incoming, spanIdOf(span, parentId, env)),
    end: (status) => endSpan(span, status),
  };
}

/** Without an SDK the span repeats its parent's id; the answer then names a span of its own. */
function spanIdOf(span: Span, parentId: string | null, env: Env): string {
  const { spanId } = span.spanContext();
  return spanId === NO_SPAN || spanId === parentId ? newSpanId(env) : spanId;
}

function endSpan(span: Span, status: number): void {
  span.setAttribute("http.response.status_code", status);
  if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}
