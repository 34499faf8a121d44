/**
 * OpenTelemetry spans through its API alone: they cost next to nothing until the process that embeds this
 * server registers an SDK.
 */
import { ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import type { Env } from "solehold/internal";
import { newSpanId, type Trace, traceparent } from "./trace.ts";

const tracer = trace.getTracer("solehold");
const NO_SPAN = "0".repeat(16);
const SERVER_SPAN = { kind: SpanKind.SERVER } as const;

export class RequestSpan {
  readonly #span: Span;
  readonly #incoming: Trace;
  readonly #env: Env;

  constructor(span: Span, incoming: Trace, env: Env) {
    this.#span = span;
    this.#incoming = incoming;
    this.#env = env;
  }

  /** For the answer; the stream has no place for it. */
  traceparent(): string {
    return traceparent(this.#incoming, spanIdOf(this.#span, this.#incoming.parentId, this.#env));
  }

  end(status: number): void {
    const span = this.#span;
    span.setAttribute("http.response.status_code", status);
    if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  }
}

export function startSpan(name: string, incoming: Trace, env: Env): RequestSpan {
  const { traceId, parentId, sampled } = incoming;
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  const parent =
    parentId === null
      ? ROOT_CONTEXT
      : trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: parentId, traceFlags, isRemote: true });
  return new RequestSpan(tracer.startSpan(name, SERVER_SPAN, parent), incoming, env);
}

/** Without an SDK the span repeats its parent's id; the answer then names a span of its own. */
function spanIdOf(span: Span, parentId: string | null, env: Env): string {
  const { spanId } = span.spanContext();
  return spanId === NO_SPAN || spanId === parentId ? newSpanId(env) : spanId;
}
