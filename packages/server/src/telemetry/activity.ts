/**
 * What the counters did lately: their growth in buckets of a few seconds, for the last hour. It is made from the same
 * counters that Prometheus scrapes, so both always agree. It starts empty with the process.
 */
import type { Env, Timer } from "solehold/internal";
import type { Metrics, MetricTotals } from "./metrics.ts";

export const BUCKET_MS = 5_000;
const KEPT_BUCKETS = 720;

export interface ActivityBucket {
  /** When it ended, on this server's clock. */
  readonly atMs: number;
  readonly grants: number;
  readonly takeovers: number;
  readonly expiries: number;
  readonly renewals: number;
  /** How much of their ttl the renewed leases had used up, on average; null without a renewal. */
  readonly renewalAge: number | null;
  /** An upper bound for the latest of them. */
  readonly renewalAgeMost: number | null;
  readonly denials: Readonly<Record<string, number>>;
  readonly waiters: number;
  readonly liveLeases: number;
}

export class Activity {
  readonly #env: Env;
  readonly #metrics: Metrics;
  readonly #buckets: ActivityBucket[] = [];
  #last: MetricTotals | null = null;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(env: Env, metrics: Metrics) {
    this.#env = env;
    this.#metrics = metrics;
  }

  async start(): Promise<void> {
    this.#last = await this.#metrics.totals();
    this.#plan();
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  /** Those that ended after this instant. */
  after(atMs: number): readonly ActivityBucket[] {
    return this.#buckets.filter((bucket) => bucket.atMs > atMs);
  }

  #plan(): void {
    if (this.#isClosed) return;
    this.#timer = this.#env.timer(BUCKET_MS, () => {
      this.#take().then(
        () => this.#plan(),
        () => this.#plan(),
      );
    });
  }

  async #take(): Promise<void> {
    const totals = await this.#metrics.totals();
    if (this.#last !== null) this.#buckets.push(bucketOf(this.#last, totals, Math.floor(this.#env.wallMs())));
    this.#last = totals;
    if (this.#buckets.length > KEPT_BUCKETS) this.#buckets.shift();
  }
}

function bucketOf(before: MetricTotals, now: MetricTotals, atMs: number): ActivityBucket {
  const renewals = now.renewals.count - before.renewals.count;
  const ages = [...now.renewals.atMost].filter(
    ([bound, count]) =>
      count - previousCount(now, bound) >
      (before.renewals.atMost.get(bound) ?? 0) - previousCount(before, bound),
  );
  return {
    atMs,
    grants: now.grants - before.grants,
    takeovers: now.takeovers - before.takeovers,
    expiries: now.expiries - before.expiries,
    renewals,
    renewalAge: renewals === 0 ? null : (now.renewals.sum - before.renewals.sum) / renewals,
    renewalAgeMost: renewals === 0 ? null : Math.max(0, ...ages.map(([bound]) => bound)),
    denials: Object.fromEntries(
      [...now.denials]
        .map(([reason, count]) => [reason, count - (before.denials.get(reason) ?? 0)] as const)
        .filter(([, count]) => count > 0),
    ),
    waiters: now.waiters,
    liveLeases: now.liveLeases,
  };
}

/** Buckets of a histogram are cumulative. */
function previousCount({ renewals: { atMost } }: MetricTotals, bound: number): number {
  const lower = [...atMost.keys()].filter((each) => each < bound);
  return lower.length === 0 ? 0 : (atMost.get(Math.max(...lower)) ?? 0);
}
