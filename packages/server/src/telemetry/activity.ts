/**
 * What was counted lately: in buckets of a few seconds, for the last hour. It is counted where the metrics that Prometheus
 * scrapes are, so both always agree. It starts empty with the process.
 */
import type { Env, Timer } from "solehold/internal";
import { type Static, Type } from "typebox";
import { Closed, Count, OrNull, Whole } from "../protocol/schemas/kinds.ts";
import type { Metrics } from "./metrics.ts";

export const BUCKET_MS = 5_000;
const KEPT_BUCKETS = 720;

const Ratio = (description: string) => OrNull(Type.Number(), description);

export const ActivityBucketSchema = Closed({
  atMs: Whole("When it ended, in ms since 1970 on this server's clock."),
  grants: Count("Leases granted."),
  takeovers: Count("Grants of leases whose last holder did not finish."),
  expiries: Count("Leases that ran out."),
  renewals: Count("Leases renewed."),
  renewalAge: Ratio("How much of its ttl a lease had used up when it was renewed, on average."),
  renewalAgeMost: Ratio("The same for the latest of them."),
  denials: Type.Record(Type.String(), Type.Integer(), { description: "Attempts not allowed, by reason." }),
  waiters: Count("Requests in a wait queue at its end."),
  liveLeases: Count("Leases alive at its end."),
});
export type ActivityBucket = Static<typeof ActivityBucketSchema>;

export class Activity {
  readonly #env: Env;
  readonly #metrics: Metrics;
  readonly #buckets: ActivityBucket[] = [];
  #timer: Timer | null = null;

  constructor(env: Env, metrics: Metrics) {
    this.#env = env;
    this.#metrics = metrics;
  }

  start(): void {
    this.#timer = this.#env.timer(BUCKET_MS, () => {
      const { renewalAges, ...counted } = this.#metrics.takeCounted();
      const renewalAge = counted.renewals === 0 ? null : renewalAges / counted.renewals;
      this.#buckets.push({ atMs: Math.floor(this.#env.wallMs()), renewalAge, ...counted });
      if (this.#buckets.length > KEPT_BUCKETS) this.#buckets.shift();
      this.start();
    });
  }

  close(): void {
    this.#timer?.cancel();
  }

  /** Those that ended after this instant. */
  after(atMs: number): readonly ActivityBucket[] {
    return this.#buckets.filter((bucket) => bucket.atMs > atMs);
  }
}
