/**
 * A request in the metrics and traces, from its arrival to its answer. OpenTelemetry's spans go through its API alone: they
 * cost next to nothing until the process that embeds this server registers an SDK.
 */
import { ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import type { Env, RandomIds } from "solehold/internal";
import type { Metrics } from "./metrics.ts";
import { newSpanId, type Trace, traceOf, traceparent } from "./trace.ts";

export interface Meters {
  readonly env: Env;
  readonly traces: RandomIds;
  readonly metrics: Metrics;
}

const tracer = trace.getTracer("solehold");
const NO_SPAN = "0".repeat(16);
const SERVER_SPAN = { kind: SpanKind.SERVER } as const;

export class MeteredRequest {
  /** As the metrics name it. */
  readonly route: string;
  readonly receivedMs: number;
  waitedMs = 0;
  readonly #meters: Meters;
  readonly #trace: Trace;
  readonly #span: Span;

  /** `header`: the traceparent that it brought. */
  constructor(
    meters: Meters,
    route: string,
    header: string | string[] | undefined,
    receivedMs = meters.env.monotonicMs(),
  ) {
    this.#meters = meters;
    this.route = route;
    this.receivedMs = receivedMs;
    this.#trace = traceOf(header, meters.traces);
    this.#span = startSpan(route, this.#trace);
  }

  get traceId(): string {
    return this.#trace.traceId;
  }

  /** For the answer; the stream has no place for it. Without an SDK the span repeats its parent's id: then it is a new one. */
  traceparent(): string {
    const { spanId } = this.#span.spanContext();
    const isOwn = spanId !== NO_SPAN && spanId !== this.#trace.parentId;
    return traceparent(this.#trace, isOwn ? spanId : newSpanId(this.#meters.env));
  }

  /** Its answer is there. Returns how many seconds that took, without the wait. */
  answered(status: number): number {
    const { env, metrics } = this.#meters;
    const seconds = (env.monotonicMs() - this.receivedMs - this.waitedMs) / 1_000;
    this.#span.setAttribute("http.response.status_code", status);
    if (status >= 500) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end();
    metrics.answered(this.route, status, seconds);
    return seconds;
  }
}

function startSpan(name: string, { traceId, parentId, sampled }: Trace): Span {
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  const parent =
    parentId === null
      ? ROOT_CONTEXT
      : trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: parentId, traceFlags, isRemote: true });
  return tracer.startSpan(name, SERVER_SPAN, parent);
}
