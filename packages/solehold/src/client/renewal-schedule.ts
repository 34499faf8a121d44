/**
 * When which lease is renewed. Leases that fall due at about the same time are renewed in the same turn
 * and so travel in one store call, while jitter keeps processes (and mass acquisitions) apart.
 *
 * Most leases are given back long before they fall due, so coming and going must cost next to nothing: an
 * appointment is linked into its slot and out of it again, without hashing and without allocating.
 */
import type { Env, Timer } from "../env/index.ts";

/** Due times are rounded DOWN to this grid: never late, and neighbours share a turn. */
const SLOT_MS = 25;
/** Shorter delays keep their length: rounded down to the grid they would be none, and renewals a storm. */
const SHORT_MS = SLOT_MS * 4;

export interface Renewable {
  renewNow(): void;
}

/** A lease's own place in the schedule. */
export class Appointment {
  readonly lease: Renewable;
  /** Null while nothing is planned. */
  slot: Slot | null = null;
  previous: Appointment | null = null;
  next: Appointment | null = null;

  constructor(lease: Renewable) {
    this.lease = lease;
  }
}

/** All that fall due at the same instant. */
class Slot {
  readonly dueMs: number;
  first: Appointment | null = null;

  constructor(dueMs: number) {
    this.dueMs = dueMs;
  }
}

export class RenewalSchedule {
  readonly #env: Env;
  readonly #slots = new Map<number, Slot>();
  #timer: Timer | null = null;
  #timerDueMs = Number.POSITIVE_INFINITY;

  constructor(env: Env) {
    this.#env = env;
  }

  /** Replaces what was planned for this lease before. */
  plan(appointment: Appointment, nowMs: number, inMs: number): void {
    this.cancel(appointment);
    const dueMs = dueAt(nowMs, inMs);
    let slot = this.#slots.get(dueMs);
    if (slot === undefined) {
      slot = new Slot(dueMs);
      this.#slots.set(dueMs, slot);
    }
    const { first } = slot;
    if (first !== null) first.previous = appointment;
    appointment.slot = slot;
    appointment.next = first;
    slot.first = appointment;
    if (dueMs < this.#timerDueMs) this.#arm(dueMs);
  }

  cancel(appointment: Appointment): void {
    const { slot, previous, next } = appointment;
    if (slot === null) return;
    if (previous === null) slot.first = next;
    else previous.next = next;
    if (next !== null) next.previous = previous;
    appointment.slot = null;
    appointment.previous = null;
    appointment.next = null;
    // The timer stays until it fires: leases come and go far more often than it does.
    if (slot.first === null && this.#slots.get(slot.dueMs) === slot) this.#slots.delete(slot.dueMs);
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
    for (const slot of [...this.#slots.values()]) if (slot.dueMs <= nowMs) this.#renewAll(slot);
    let nextMs = Number.POSITIVE_INFINITY;
    for (const { dueMs } of this.#slots.values()) nextMs = Math.min(nextMs, dueMs);
    if (nextMs < this.#timerDueMs) this.#arm(nextMs);
  }

  /** Whatever a renewal plans or cancels: each lease that was due is renewed once. */
  #renewAll(slot: Slot): void {
    this.#slots.delete(slot.dueMs);
    for (let due = slot.first; due !== null; due = slot.first) {
      this.cancel(due);
      due.lease.renewNow();
    }
  }
}

/** The instant at which a lease due in `inMs` is renewed. */
function dueAt(nowMs: number, inMs: number): number {
  const gridMs = inMs < SHORT_MS ? 1 : SLOT_MS;
  return Math.max(Math.ceil(nowMs), Math.floor((nowMs + inMs) / gridMs) * gridMs);
}
