/**
 * When which lease is renewed. Leases that fall due at about the same time are renewed in the same turn
 * and so travel in one store call, while jitter keeps processes (and mass acquisitions) apart.
 *
 * Most leases are given back long before they fall due, so coming and going must cost next to nothing.
 */
import type { Env, Timer } from "../env/index.ts";

/** Due times are rounded DOWN to this grid: never late, and neighbours share a turn. */
const SLOT_MS = 25;
/** Shorter delays keep their length: rounded down to the grid they would be none, and renewals a storm. */
const SHORT_MS = SLOT_MS * 4;

export interface Renewable {
  renewNow(): void;
}

/** A lease's own place in the schedule: in a ring of those that fall due at the same instant, or alone. */
export class Appointment {
  /** Null for the one that stands for the instant itself, and from which the ring is walked. */
  readonly lease: Renewable | null;
  #before: Appointment = this;
  after: Appointment = this;

  constructor(lease: Renewable | null) {
    this.lease = lease;
  }

  /** Nothing is planned after this. */
  cancel(): void {
    this.#before.after = this.after;
    this.after.#before = this.#before;
    this.#before = this;
    this.after = this;
  }

  /** Into the ring of `first`, as its last. */
  join(first: Appointment): void {
    this.#before = first.#before;
    this.after = first;
    this.#before.after = this;
    first.#before = this;
  }
}

export class RenewalSchedule {
  readonly #env: Env;
  /** An empty one stays until it is due, and so does the timer: leases come and go far more often. */
  readonly #slots = new Map<number, Appointment>();
  #timer: Timer | null = null;
  #timerDueMs = Number.POSITIVE_INFINITY;

  constructor(env: Env) {
    this.#env = env;
  }

  /** Replaces what was planned for this lease before. */
  plan(appointment: Appointment, nowMs: number, inMs: number): void {
    appointment.cancel();
    const dueMs = dueAt(nowMs, inMs);
    const slot = this.#slots.get(dueMs) ?? new Appointment(null);
    this.#slots.set(dueMs, slot);
    appointment.join(slot);
    if (dueMs < this.#timerDueMs) this.#arm(dueMs);
  }

  close(): void {
    this.#slots.clear();
    this.#disarm();
  }

  #arm(dueMs: number): void {
    this.#timer?.cancel();
    this.#timerDueMs = dueMs;
    const inMs = Math.max(0, dueMs - this.#env.monotonicMs());
    this.#timer = this.#env.timer(inMs, () => this.#fire());
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerDueMs = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.#disarm();
    const nowMs = this.#env.monotonicMs();
    for (const [dueMs, slot] of [...this.#slots]) {
      if (dueMs > nowMs) continue;
      this.#slots.delete(dueMs);
      for (let next = slot.after; next.lease !== null; next = slot.after) {
        next.cancel();
        next.lease.renewNow();
      }
    }
    const nextMs = Math.min(...this.#slots.keys());
    if (nextMs < this.#timerDueMs) this.#arm(nextMs);
  }
}

/** The instant at which a lease due in `inMs` is renewed. */
function dueAt(nowMs: number, inMs: number): number {
  const gridMs = inMs < SHORT_MS ? 1 : SLOT_MS;
  return Math.max(Math.ceil(nowMs), Math.floor((nowMs + inMs) / gridMs) * gridMs);
}
