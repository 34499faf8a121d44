/**
 * When which lease is renewed. Leases that fall due at about the same time are renewed in the same turn
 * and so travel in one store call, while jitter keeps processes (and mass acquisitions) apart.
 *
 * Most leases are released long before they fall due, so coming and going must cost next to nothing.
 */
import type { Env } from "../env/index.ts";
import { Alarm } from "../support/alarm.ts";

/** Due times are rounded DOWN to this grid: never late, and neighbours share a turn. */
const SLOT_MS = 25;
/** Shorter delays keep their length: rounded down to the grid they would be none, and renewals a storm. */
const SHORT_MS = SLOT_MS * 4;

export interface Renewable {
  renewNow(): void;
}

export class RenewalSchedule {
  readonly #env: Env;
  readonly #alarm: Alarm;
  /** By due time. An empty one stays until it is due: leases come and go far more often. */
  readonly #buckets = new Map<number, Set<Renewable>>();
  /** Of each lease that is planned, also while its bucket is being renewed. */
  readonly #bucketOf = new Map<Renewable, Set<Renewable>>();

  constructor(env: Env) {
    this.#env = env;
    this.#alarm = new Alarm(env, () => this.#fire());
  }

  /** Replaces what was planned for this lease before. */
  plan(lease: Renewable, nowMs: number, inMs: number): void {
    this.cancel(lease);
    const dueMs = dueAt(nowMs, inMs);
    const bucket = this.#buckets.get(dueMs) ?? new Set();
    this.#buckets.set(dueMs, bucket.add(lease));
    this.#bucketOf.set(lease, bucket);
    this.#alarm.setBy(dueMs);
  }

  /** Nothing is planned for this lease after this. */
  cancel(lease: Renewable): void {
    this.#bucketOf.get(lease)?.delete(lease);
    this.#bucketOf.delete(lease);
  }

  close(): void {
    this.#buckets.clear();
    this.#bucketOf.clear();
    this.#alarm.cancel();
  }

  #fire(): void {
    const nowMs = this.#env.monotonicMs();
    for (const [dueMs, bucket] of [...this.#buckets]) {
      if (dueMs > nowMs) continue;
      // First, so that what a renewal plans for this very instant has a bucket of its own, and a turn of its own.
      this.#buckets.delete(dueMs);
      for (const lease of bucket) {
        this.cancel(lease);
        lease.renewNow();
      }
    }
    this.#alarm.setBy(Math.min(...this.#buckets.keys()));
  }
}

/** The instant at which a lease due in `inMs` is renewed. */
function dueAt(nowMs: number, inMs: number): number {
  const gridMs = inMs < SHORT_MS ? 1 : SLOT_MS;
  return Math.max(Math.ceil(nowMs), Math.floor((nowMs + inMs) / gridMs) * gridMs);
}
