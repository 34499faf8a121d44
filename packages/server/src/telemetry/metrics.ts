/**
 * What Prometheus sees. Decisions are counted where they enter the audit, so both always agree. No label
 * holds a tenant, a name, a holder or a secret: the number of series is bounded.
 */
import { performance } from "node:perf_hooks";
import type { AuditEvent } from "solehold/internal";
import { type Count, type Distribution, Registry } from "./prometheus.ts";

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const WAIT_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];
const RATIOS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];
const MICROSECONDS = 1e6;

/** What is counted of one route. */
interface RouteMeters {
  readonly seconds: Distribution;
  readonly byStatus: Map<number, Count>;
}

/** What is counted of one kind of decision. */
interface DecisionMeters {
  readonly decisions: Count;
  /** Grants, denials or expiries; null for all others. */
  readonly special: Count | null;
}

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
  readonly #decisions = this.registry.counter(
    "solehold_decisions_total",
    "Decisions by action and reason, as in the audit.",
  );
  readonly #grants = this.registry.counter("solehold_grants_total", "Leases granted.");
  readonly #denials = this.registry.counter("solehold_denials_total", "Attempts not allowed, by reason.");
  readonly #takeovers = this.registry.counter(
    "solehold_takeovers_total",
    "Grants of leases whose last holder did not finish.",
  );
  readonly #expiries = this.registry.counter(
    "solehold_expiries_total",
    "Leases that ran out without being ended.",
  );
  readonly #requests = this.registry.counter("solehold_requests_total", "Requests and stream operations.");
  readonly #requestSeconds = this.registry.histogram(
    "solehold_request_seconds",
    "From arrival to answer.",
    SECONDS,
  );
  readonly #storeSeconds = this.registry.histogram("solehold_store_seconds", "Calls to the store.", SECONDS);
  readonly #conflicts = this.registry.counter(
    "solehold_store_conflicts_total",
    "Writes that met another writer's: decided again. Few where every key has one home.",
  );
  readonly #collected = this.registry.counter(
    "solehold_collected_records_total",
    "Ended records that this server deleted.",
  );
  readonly #waitSeconds = this.registry.histogram(
    "solehold_wait_seconds",
    "Time in line, by how it ended.",
    WAIT_SECONDS,
  );
  readonly #renewalAge = this.registry.histogram(
    "solehold_renewal_age_ratio",
    "How much of its ttl a lease had used up when it was renewed; near 1 is nearly too late.",
    RATIOS,
  );
  readonly #routes = new Map<string, RouteMeters>();
  /** By reason, then by action. */
  readonly #allowed = new Map<string, Map<string, DecisionMeters>>();
  readonly #notAllowed = new Map<string, Map<string, DecisionMeters>>();

  /** Answers from now on include what `readings` say at that moment, and how the process does. */
  observe(readings: Readings): void {
    const { registry } = this;
    registry.gauge("solehold_waiters", "Requests that wait in line.", readings.waiters);
    registry.gauge("solehold_watchers", "Open watches.", readings.watchers);
    registry.gauge("solehold_streams", "Open stream connections.", readings.streams);
    registry.gauge(
      "solehold_live_leases",
      "Leases alive, in tenants used through this server.",
      readings.liveLeases,
    );
    registry.gauge("solehold_audit_lag", "Audit entries that are not on the disk yet.", readings.auditLag);
    registry.observedCounter(
      "solehold_audit_dropped_total",
      "Audit entries lost because the disk could not keep up.",
      readings.auditDropped,
    );
    registry.observedCounter(
      "solehold_store_clock_jumps_total",
      "How often the store's clock was seen to jump.",
      readings.clockJumps,
    );
    observeProcess(registry);
  }

  audited({ action, allowed, reason }: AuditEvent): void {
    const byReason = allowed ? this.#allowed : this.#notAllowed;
    let meters = byReason.get(reason)?.get(action);
    if (meters === undefined) {
      meters = this.#decisionMeters(action, allowed, reason);
      byReason.set(reason, (byReason.get(reason) ?? new Map()).set(action, meters));
    }
    meters.decisions.value += 1;
    if (meters.special !== null) meters.special.value += 1;
  }

  takeover(): void {
    this.#takeovers.add();
  }

  renewed(ageRatio: number): void {
    this.#renewalAge.observe(ageRatio);
  }

  waited(seconds: number, end: string): void {
    this.#waitSeconds.observe(seconds, { end });
  }

  answered(route: string, status: number, seconds: number): void {
    let meters = this.#routes.get(route);
    if (meters === undefined) {
      meters = { seconds: this.#requestSeconds.with({ route }), byStatus: new Map() };
      this.#routes.set(route, meters);
    }
    meters.seconds.observe(seconds);
    let count = meters.byStatus.get(status);
    if (count === undefined) {
      count = this.#requests.with({ route, status: String(status) });
      meters.byStatus.set(status, count);
    }
    count.value += 1;
  }

  collided(writes: number): void {
    if (writes > 0) this.#conflicts.add({}, writes);
  }

  collected(records: number): void {
    if (records > 0) this.#collected.add({}, records);
  }

  #decisionMeters(action: string, allowed: boolean, reason: string): DecisionMeters {
    const decisions = this.#decisions.with({ action, allowed: String(allowed), reason });
    if (action === "expire") return { decisions, special: this.#expiries.with({}) };
    if (!allowed) return { decisions, special: this.#denials.with({ reason }) };
    return { decisions, special: action === "grant" ? this.#grants.with({}) : null };
  }

  storeCalled(call: string, result: "ok" | "failed", seconds: number): void {
    this.#storeSeconds.observe(seconds, { call, result });
  }
}

function observeProcess(registry: Registry): void {
  let last = performance.eventLoopUtilization();
  registry.gauge("solehold_event_loop_busy_ratio", "Since the last scrape; 1 is saturated.", () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  });
  registry.gauge("process_resident_memory_bytes", "Memory of the process.", () => process.memoryUsage.rss());
  registry.observedCounter("process_cpu_seconds_total", "User and system time.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / MICROSECONDS;
  });
}
