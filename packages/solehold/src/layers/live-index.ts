/**
 * Which leases are alive, in order of their expiry: counts without scanning, and announces when one runs out.
 *
 * It follows the service's own decisions and the store's watch events. It is an index, not a truth: a decision is
 * never based on it, except for the limit on live leases, which may be off by what other processes did in
 * the last moment.
 */
import { isOlderRecord, type LeaseKey, type LeaseRecord } from "../core/index.ts";
import type { Env, Timer } from "../env/index.ts";
import { Heap } from "../support/heap.ts";
import { invariant } from "../support/invariant.ts";

interface Entry {
  readonly key: LeaseKey;
  readonly record: LeaseRecord;
  readonly expiresAtMs: number;
}

export interface LiveIndexOptions {
  readonly env: Env;
  /** The store's clock. */
  readonly nowMs: () => number;
  /** A lease ran out and nobody ended or prolonged it, as far as is known. */
  readonly onExpired: (record: LeaseRecord) => void;
}

/** A million leases that end in one second are announced in portions, so that other work gets its turn. */
const EXPIRIES_PER_TURN = 2_000;
const LONGEST_TURN_MS = 4;
const LOOK_AT_CLOCK_EVERY = 32;
const PAUSE_BETWEEN_PORTIONS_MS = 1;

export class LiveIndex {
  readonly #options: LiveIndexOptions;
  /** By tenant, then by name: neither has to be put together for a look. */
  readonly #tenants = new Map<string, Map<string, Entry>>();
  #total = 0;
  /** By expiry; entries that were replaced stay in it until they come up. */
  #heap = new Heap<Entry>(endsBefore);
  #timer: Timer | null = null;
  #timerAtMs = Number.POSITIVE_INFINITY;

  constructor(options: LiveIndexOptions) {
    this.#options = options;
  }

  count(tenant: string): number {
    this.#sweep(EXPIRIES_PER_TURN);
    return this.#tenants.get(tenant)?.size ?? 0;
  }

  /** Of all tenants; those that ended in this very moment may still be counted. */
  total(): number {
    return this.#total;
  }

  /**
   * Whether the tenant has room for `more`. Only when it seems to have none is everything looked at that has
   * ended by now: a grant must not pay for many that end at once.
   */
  hasRoom(tenant: string, more: number, limit: number): boolean {
    const atMost = (this.#tenants.get(tenant)?.size ?? 0) + more;
    if (atMost <= limit) return true;
    this.#sweep(Number.MAX_SAFE_INTEGER);
    return (this.#tenants.get(tenant)?.size ?? 0) + more <= limit;
  }

  has(key: LeaseKey): boolean {
    return this.#entryOf(key) !== undefined;
  }

  #entryOf({ tenant, name }: LeaseKey): Entry | undefined {
    return this.#tenants.get(tenant)?.get(name);
  }

  /** The record that now stands under its key. An older one than what is known is ignored. */
  learn(record: LeaseRecord): void {
    const known = this.#entryOf(record.key)?.record;
    // The service's own decision comes back as a watch event.
    if (known === record || (known !== undefined && isOlderRecord(record, known))) return;
    // Somebody took it over before its end was announced here: that is done now, or it never would be.
    if (known !== undefined && !isSameGrant(known, record) && known.expiresAtMs <= this.#options.nowMs())
      this.#options.onExpired(known);
    if (record.state !== "held") {
      if (known !== undefined) this.remove(record.key);
      return;
    }
    // One that was known alive and has run out is not forgotten here: its end is still to be announced.
    if (known === undefined && record.expiresAtMs <= this.#options.nowMs()) return;
    const entry: Entry = { key: record.key, record, expiresAtMs: record.expiresAtMs };
    this.#put(entry, known === undefined ? 1 : 0);
    this.#push(entry);
    this.#arm();
  }

  #put(entry: Entry, more: number): void {
    const { tenant, name } = entry.key;
    const names = this.#tenants.get(tenant);
    if (names === undefined) this.#tenants.set(tenant, new Map([[name, entry]]));
    else names.set(name, entry);
    this.#total += more;
  }

  remove({ tenant, name }: LeaseKey): void {
    const names = this.#tenants.get(tenant);
    if (names === undefined || !names.delete(name)) return;
    this.#total -= 1;
    invariant(this.#total >= 0 && this.#heap.size >= this.#total, "every live lease is in the heap");
    if (names.size === 0) this.#tenants.delete(tenant);
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#tenants.clear();
    this.#total = 0;
    this.#heap = new Heap(endsBefore);
  }

  /** Announces what has expired, at most `limit` of them; fewer when that takes too long for one turn. */
  #sweep(limit: number): void {
    const { env } = this.#options;
    const nowMs = this.#options.nowMs();
    const untilMs =
      limit > EXPIRIES_PER_TURN ? Number.POSITIVE_INFINITY : env.monotonicMs() + LONGEST_TURN_MS;
    for (let count = 0; count < limit; count += 1) {
      if (count % LOOK_AT_CLOCK_EVERY === 0 && env.monotonicMs() > untilMs) return;
      const { first } = this.#heap;
      if (first === undefined || first.expiresAtMs > nowMs) return;
      this.#heap.pop();
      if (this.#entryOf(first.key) !== first) continue;
      this.remove(first.key);
      this.#options.onExpired(first.record);
    }
  }

  #arm(): void {
    const { first } = this.#heap;
    if (first === undefined || first.expiresAtMs >= this.#timerAtMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = first.expiresAtMs;
    this.#plan(Math.max(0, first.expiresAtMs - this.#options.nowMs()));
  }

  #plan(inMs: number): void {
    this.#timer = this.#options.env.timer(inMs, () => {
      this.#timerAtMs = Number.POSITIVE_INFINITY;
      this.#sweep(EXPIRIES_PER_TURN);
      const { first } = this.#heap;
      if (first !== undefined && first.expiresAtMs <= this.#options.nowMs())
        this.#plan(PAUSE_BETWEEN_PORTIONS_MS);
      else this.#arm();
    });
  }

  /** Renewals leave old entries behind; when they outnumber the live ones the heap is made anew. */
  #push(entry: Entry): void {
    this.#heap.push(entry);
    if (this.#heap.size <= 64 || this.#heap.size <= this.#total * 4) return;
    const live = [...this.#tenants.values()].flatMap((names) => [...names.values()]);
    this.#heap = new Heap(
      endsBefore,
      live.sort((a, b) => a.expiresAtMs - b.expiresAtMs),
    );
  }
}

function endsBefore(a: Entry, b: Entry): boolean {
  return a.expiresAtMs < b.expiresAtMs;
}

function isSameGrant(a: LeaseRecord, b: LeaseRecord): boolean {
  return a.term === b.term && a.generation === b.generation;
}
