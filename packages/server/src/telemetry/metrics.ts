/**
 * What Prometheus sees. Decisions are counted where they enter the audit, so both always agree. No label
 * holds a tenant, a name, a holder or a secret: the number of series is bounded.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { AuditEvent } from "solehold/service";

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const WAIT_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];
const RATIOS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

/** What is only worth reading when somebody asks. */
export interface Readings {
  waiters(): number;
  watchers(): number;
  streams(): number;
  liveLeases(): number;
  auditLag(): number;
  auditDropped(): number;
  clockJumps(): number;
}

export class Metrics {
  readonly registry = new Registry();
  readonly #decisions = this.#counter("decisions_total", "Decisions by action, as in the audit.", [
    "action",
    "allowed",
    "reason",
  ]);
  readonly #grants = this.#counter("grants_total", "Leases granted.", []);
  readonly #denials = this.#counter("denials_total", "Requests not allowed, by reason.", ["reason"]);
  readonly #takeovers = this.#counter(
    "takeovers_total",
    "Grants of leases whose last holder did not finish.",
    [],
  );
  readonly #expiries = this.#counter("expiries_total", "Leases that ran out without being ended.", []);
  readonly #requests = this.#counter("requests_total", "Requests and stream commands.", ["route", "status"]);
  readonly #requestSeconds = this.#histogram(
    "request_seconds",
    "From arrival to answer.",
    ["route"],
    SECONDS,
  );
  readonly #storeSeconds = this.#histogram("store_seconds", "Calls to the store.", ["call", "ok"], SECONDS);
  readonly #waitSeconds = this.#histogram(
    "wait_seconds",
    "Time in line, by how it ended.",
    ["end"],
    WAIT_SECONDS,
  );
  readonly #renewalAge = this.#histogram(
    "renewal_age_ratio",
    "How much of its ttl a lease had used up when it was renewed; near 1 is nearly too late.",
    [],
    RATIOS,
  );

  /** Answers from now on include what `readings` say at that moment. */
  observe(readings: Readings): void {
    collectDefaultMetrics({ register: this.registry, prefix: "solehold_" });
    const gauges: readonly (readonly [string, string, () => number])[] = [
      ["waiters", "Requests that wait in line.", readings.waiters],
      ["watchers", "Open watches.", readings.watchers],
      ["streams", "Open stream connections.", readings.streams],
      ["live_leases", "Leases alive, in tenants used through this server.", readings.liveLeases],
      ["audit_lag", "Audit entries that are not on the disk yet.", readings.auditLag],
      ["audit_dropped", "Audit entries lost because the disk could not keep up.", readings.auditDropped],
      ["store_clock_jumps", "How often the store's clock was seen to jump.", readings.clockJumps],
    ];
    for (const [name, help, read] of gauges) {
      const gauge: Gauge = new Gauge({
        name: `solehold_${name}`,
        help,
        registers: [this.registry],
        collect: () => gauge.set(read()),
      });
    }
  }

  audited({ action, allowed, reason }: AuditEvent): void {
    this.#decisions.inc({ action, allowed: String(allowed), reason });
    if (action === "expire") this.#expiries.inc();
    else if (!allowed) this.#denials.inc({ reason });
    else if (action === "grant") this.#grants.inc();
  }

  takeover(): void {
    this.#takeovers.inc();
  }

  renewed(ageRatio: number): void {
    this.#renewalAge.observe(ageRatio);
  }

  waited(seconds: number, end: string): void {
    this.#waitSeconds.observe({ end }, seconds);
  }

  answered(route: string, status: number, seconds: number): void {
    this.#requests.inc({ route, status: String(status) });
    this.#requestSeconds.observe({ route }, seconds);
  }

  storeCalled(call: string, ok: boolean, seconds: number): void {
    this.#storeSeconds.observe({ call, ok: String(ok) }, seconds);
  }

  #counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
    return new Counter({
      name: `solehold_${name}`,
      help,
      labelNames: [...labelNames],
      registers: [this.registry],
    });
  }

  #histogram<Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    buckets: readonly number[],
  ): Histogram<Label> {
    return new Histogram({
      name: `solehold_${name}`,
      help,
      labelNames: [...labelNames],
      buckets: [...buckets],
      registers: [this.registry],
    });
  }
}
