/**
 * OpenTelemetry for leases, entry `solehold/opentelemetry`: spans and metrics made of the events of diagnostics.ts. It uses
 * the API package alone; what is exported, and where to, is up to the SDK of the program.
 *
 * OpenTelemetry has no convention for locks and leases. These names are a proposal; docs/using-leases.md lists them. Names
 * of leases and holders are on spans only: as attributes of metrics they would make a series for each.
 */
import {
  type Attributes,
  type Meter,
  metrics,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { subscribe } from "./diagnostics.ts";
import { LeaseError } from "./errors.ts";
import type { Lease } from "./lease.ts";

export interface InstrumentationOptions {
  /** Default: the global provider's tracer "solehold". */
  readonly tracer?: Tracer;
  /** Default: the global provider's meter "solehold". */
  readonly meter?: Meter;
}

/** From now on, for all leases of this process. Returns how to end it. */
export function instrumentLeases(options: InstrumentationOptions = {}): () => void {
  const { tracer = trace.getTracer("solehold"), meter = metrics.getMeter("solehold") } = options;
  const { acquires, acquireSeconds, held, holdSeconds, renewSeconds, jeopardies, losses } =
    instruments(meter);
  const attempts = new Map<number, Span>();
  const holds = new WeakMap<Lease, Span>();

  const endAttempt = (attempt: number | null, outcome: string, durationMs: number): Span | undefined => {
    acquires.add(1, { "solehold.outcome": outcome });
    acquireSeconds.record(durationMs / 1_000, { "solehold.outcome": outcome });
    const span = attempts.get(attempt ?? 0);
    attempts.delete(attempt ?? 0);
    return span?.setAttribute("solehold.outcome", outcome);
  };
  const endHold = (lease: Lease, end: string, heldMs: number): void => {
    // Held before this was switched on.
    const span = holds.get(lease);
    if (span === undefined) return;
    holds.delete(lease);
    held.add(-1);
    holdSeconds.record(heldMs / 1_000, { "solehold.end": end });
    span.setAttribute("solehold.end", end).end();
  };

  const ends = [
    subscribe("attempt", ({ attempt, key, holder }) => {
      const attributes = {
        "solehold.tenant": key.tenant,
        "solehold.lease": key.name,
        "solehold.holder": holder,
      };
      attempts.set(attempt ?? 0, tracer.startSpan("solehold.acquire", { attributes }));
    }),
    subscribe("waiting", ({ attempt, for: { holder, position } }) => {
      const by = holder === null ? {} : { "solehold.held_by": holder };
      attempts.get(attempt ?? 0)?.addEvent("waiting", { ...by, "solehold.position": position });
    }),
    subscribe("granted", ({ attempt, lease, durationMs }) => {
      endAttempt(attempt, "granted", durationMs)?.setAttributes(grantOf(lease)).end();
      held.add(1);
      holds.set(lease, tracer.startSpan("solehold.hold", { attributes: grantOf(lease) }));
    }),
    subscribe("refused", ({ attempt, durationMs, error }) => {
      const span = endAttempt(attempt, error instanceof LeaseError ? error.code : "error", durationMs);
      // Somebody else having it is no error.
      if (!(error instanceof LeaseError) || !error.code.match(/^LEASE_(HELD|TIMEOUT)$/))
        span?.setStatus({ code: SpanStatusCode.ERROR, message: String(error) });
      span?.end();
    }),
    subscribe("renewed", ({ lease, durationMs }) => {
      renewSeconds.record(durationMs / 1_000);
      holds.get(lease)?.addEvent("renewed");
    }),
    subscribe("jeopardy", ({ lease, remainingMs }) => {
      jeopardies.add(1);
      holds.get(lease)?.addEvent("jeopardy", { "solehold.remaining_ms": remainingMs });
    }),
    subscribe("lost", ({ lease, reason, heldMs }) => {
      losses.add(1, { "solehold.reason": reason });
      holds.get(lease)?.setStatus({ code: SpanStatusCode.ERROR, message: reason });
      endHold(lease, reason, heldMs);
    }),
    subscribe("released", ({ lease, heldMs }) => endHold(lease, "released", heldMs)),
  ];
  return () => {
    for (const end of ends) end();
  };
}

function grantOf({ key, holder, fence, slot }: Lease): Attributes {
  return {
    ...{ "solehold.tenant": key.tenant, "solehold.lease": key.name, "solehold.holder": holder },
    ...{ "solehold.fence": String(fence), "solehold.slot": slot },
  };
}

function instruments(meter: Meter) {
  const seconds = (name: string, description: string) =>
    meter.createHistogram(name, { unit: "s", description });
  return {
    acquires: meter.createCounter("solehold.acquires", { description: "Attempts that ended, by outcome." }),
    acquireSeconds: seconds("solehold.acquire.duration", "How long an attempt took, with its wait."),
    held: meter.createUpDownCounter("solehold.leases.held", {
      description: "Leases in the hands of this process.",
    }),
    holdSeconds: seconds("solehold.hold.duration", "How long leases were held."),
    renewSeconds: seconds("solehold.renewal.duration", "How long renewals took that the store confirmed."),
    jeopardies: meter.createCounter("solehold.leases.jeopardy", { description: "Renewals that failed." }),
    losses: meter.createCounter("solehold.leases.lost", { description: "Leases that were lost, by reason." }),
  };
}
