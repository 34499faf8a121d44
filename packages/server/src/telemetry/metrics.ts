/**
 * What Prometheus sees. Decisions are counted where they enter the audit, so both always agree. No label
 * holds a tenant, a name, a holder or a secret: the number of series is bounded.
 */
import { performance } from "node:perf_hooks";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { AuditEvent } from "solehold/internal";

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const WAIT_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];
const RATIOS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];
const MICROSECONDS = 1e6;

/** What is only worth reading when somebody asks. */
const GAUGES = {
  waiters: ["solehold_waiters", "Requests in a wait queue."],
  watchers: ["solehold_watchers", "Open watches."],
  streams: ["solehold_streams", "Open stream connections."],
  liveLeases: ["solehold_live_leases", "Leases alive, in tenants used through this server."],
  auditLag: ["solehold_audit_lag", "Audit entries that are not on the disk yet."],
  auditUnshipped: ["solehold_audit_unshipped", "Audit entries that --audit-ship has not sent yet."],
} as const;
/** Counters that something else keeps. */
const COUNTERS = {
  auditDropped: ["solehold_audit_dropped_total", "Audit entries lost because the disk could not keep up."],
  clockJumps: ["solehold_store_clock_jumps_total", "How often the store's clock was seen to jump."],
} as const;

type GaugeName = keyof typeof GAUGES;
type CounterName = keyof typeof COUNTERS;
export type Readings = { readonly [name in GaugeName | CounterName]: () => number };

/** What was counted since it was last taken. */
interface Counted {
  grants: number;
  takeovers: number;
  expiries: number;
  renewals: number;
  /** How much of its ttl each had used up: the sum, and the most; null without a renewal. */
  renewalAges: number;
  renewalAgeMost: number | null;
  readonly denials: Record<string, number>;
}

function nothingCounted(): Counted {
  return {
    ...{ grants: 0, takeovers: 0, expiries: 0, renewals: 0, renewalAges: 0, renewalAgeMost: null },
    denials: {},
  };
}

export class Metrics {
  readonly registry = new Registry();
  readonly #decisions = this.#counter(
    "solehold_decisions_total",
    "Decisions by action and reason, as in the audit.",
    ["action", "allowed", "reason"],
  );
  readonly #grants = this.#counter("solehold_grants_total", "Leases granted.");
  readonly #denials = this.#counter("solehold_denials_total", "Attempts not allowed, by reason.", ["reason"]);
  readonly #takeovers = this.#counter(
    "solehold_takeovers_total",
    "Grants of leases whose last holder did not finish.",
  );
  readonly #expiries = this.#counter("solehold_expiries_total", "Leases that ran out without being ended.");
  readonly #requests = this.#counter("solehold_requests_total", "Requests and stream operations.", [
    "route",
    "status",
  ]);
  readonly #requestSeconds = this.#histogram(
    "solehold_request_seconds",
    "From arrival to answer, without the time in a wait queue.",
    SECONDS,
    ["route"],
  );
  readonly #storeSeconds = this.#histogram("solehold_store_seconds", "Calls to the store.", SECONDS, [
    "call",
    "result",
  ]);
  readonly #conflicts = this.#counter(
    "solehold_store_conflicts_total",
    "Writes that met another writer's: decided again. Few where every key has one home.",
  );
  readonly #collected = this.#counter(
    "solehold_collected_records_total",
    "Ended records that this server deleted.",
  );
  readonly #waitSeconds = this.#histogram(
    "solehold_wait_seconds",
    "Time in the wait queue, by how it ended.",
    WAIT_SECONDS,
    ["end"],
  );
  readonly #renewalAge = this.#histogram(
    "solehold_renewal_age_ratio",
    "How much of its ttl a lease had used up when it was renewed; near 1 is nearly too late.",
    RATIOS,
  );
  #readings: Readings | null = null;
  #counted = nothingCounted();

  /** In Prometheus' text format. */
  text(): Promise<string> {
    return this.registry.metrics();
  }

  /** Answers from now on include what `readings` say at that moment, and how the process does. */
  observe(readings: Readings): void {
    this.#readings = readings;
    for (const [name, [metric, help]] of Object.entries(GAUGES))
      this.#gauge(metric, help, readings[name as GaugeName]);
    for (const [name, [metric, help]] of Object.entries(COUNTERS))
      this.#observedCounter(metric, help, readings[name as CounterName]);
    this.#observeProcess();
  }

  takeCounted(): Counted & { readonly waiters: number; readonly liveLeases: number } {
    const counted = this.#counted;
    this.#counted = nothingCounted();
    const { waiters, liveLeases } = this.#readings ?? { waiters: () => 0, liveLeases: () => 0 };
    return { ...counted, waiters: waiters(), liveLeases: liveLeases() };
  }

  audited({ action, allowed, reason }: AuditEvent): void {
    this.#decisions.inc({ action, allowed: String(allowed), reason });
    if (action === "expire") {
      this.#expiries.inc();
      this.#counted.expiries += 1;
    } else if (!allowed) {
      this.#denials.inc({ reason });
      this.#counted.denials[reason] = (this.#counted.denials[reason] ?? 0) + 1;
    } else if (action === "grant") {
      this.#grants.inc();
      this.#counted.grants += 1;
    }
  }

  takeover(): void {
    this.#takeovers.inc();
    this.#counted.takeovers += 1;
  }

  renewed(ageRatio: number): void {
    this.#renewalAge.observe(ageRatio);
    this.#counted.renewals += 1;
    this.#counted.renewalAges += ageRatio;
    this.#counted.renewalAgeMost = Math.max(this.#counted.renewalAgeMost ?? 0, ageRatio);
  }

  waited(seconds: number, end: string): void {
    this.#waitSeconds.observe({ end }, seconds);
  }

  answered(route: string, status: number, seconds: number): void {
    this.#requestSeconds.observe({ route }, seconds);
    this.#requests.inc({ route, status });
  }

  collided(writes: number): void {
    if (writes > 0) this.#conflicts.inc(writes);
  }

  collected(records: number): void {
    if (records > 0) this.#collected.inc(records);
  }

  storeCalled(call: string, result: "ok" | "failed", seconds: number): void {
    this.#storeSeconds.observe({ call, result }, seconds);
  }

  #observeProcess(): void {
    let last = performance.eventLoopUtilization();
    this.#gauge("solehold_event_loop_busy_ratio", "Since the last scrape; 1 is saturated.", () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      return utilization;
    });
    this.#gauge("process_resident_memory_bytes", "Memory of the process.", () => process.memoryUsage.rss());
    this.#observedCounter("process_cpu_seconds_total", "User and system time.", () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / MICROSECONDS;
    });
  }

  #counter<Label extends string = never>(
    name: string,
    help: string,
    labelNames: readonly Label[] = [],
  ): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  #histogram<Label extends string = never>(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames: readonly Label[] = [],
  ): Histogram<Label> {
    return new Histogram({ name, help, buckets: [...buckets], labelNames, registers: [this.registry] });
  }

  /** `read` is asked at each scrape. */
  #gauge(name: string, help: string, read: () => number): void {
    const collect = function (this: Gauge): void {
      this.set(read());
    };
    new Gauge({ name, help, registers: [this.registry], collect });
  }

  #observedCounter(name: string, help: string, read: () => number): void {
    const collect = function (this: Counter): void {
      this.reset();
      this.inc(read());
    };
    new Counter({ name, help, registers: [this.registry], collect });
  }
}
