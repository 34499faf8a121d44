/**
 * When which lease is renewed. Leases that fall due at about the same time are renewed in the same turn
 * and so travel in one store call, while jitter keeps processes (and mass acquisitions) apart.
 */
import type { Env, Timer } from "../env/index.ts";

/** Due times are rounded DOWN to this grid: never late, and neighbours share a turn. */
const SLOT_MS = 25;
/** Shorter delays keep their length: rounded down to the grid they would be none, and renewals a storm. */
const SHORT_MS = SLOT_MS * 4;

export interface Renewable {
  renewNow(): void;
}

export class RenewalSchedule {
  readonly #env: Env;
  readonly #slots = new Map<number, Set<Renewable>>();
  readonly #slotOf = new Map<Renewable, number>();
  #timer: Timer | null = null;
  #timerSlot = Number.POSITIVE_INFINITY;

  constructor(env: Env) {
    this.#env = env;
  }

  /** Replaces what was planned for this lease before. */
  plan(lease: Renewable, inMs: number): void {
    this.cancel(lease);
    const slot = slotFor(this.#env.monotonicMs(), inMs);
    const members = this.#slots.get(slot) ?? new Set<Renewable>();
    members.add(lease);
    this.#slots.set(slot, members);
    this.#slotOf.set(lease, slot);
    if (slot < this.#timerSlot) this.#arm(slot);
  }

  cancel(lease: Renewable): void {
    const slot = this.#slotOf.get(lease);
    if (slot === undefined) return;
    this.#slotOf.delete(lease);
    const members = this.#slots.get(slot);
    members?.delete(lease);
    // The timer stays until it fires: leases come and go far more often than it does.
    if (members?.size === 0) this.#slots.delete(slot);
  }

  close(): void {
    this.#slots.clear();
    this.#slotOf.clear();
    this.#disarm();
  }

  #arm(slot: number): void {
    this.#timer?.cancel();
    this.#timerSlot = slot;
    const inMs = Math.max(0, slot - this.#env.monotonicMs());
    this.#timer = this.#env.timer(inMs, () => this.#fire());
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerSlot = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.#disarm();
    const nowMs = this.#env.monotonicMs();
    const due = [...this.#slots].filter(([slot]) => slot <= nowMs).flatMap(([, members]) => [...members]);
    for (const lease of due) {
      this.cancel(lease);
      lease.renewNow();
    }
    const next = Math.min(...this.#slots.keys());
    if (Number.isFinite(next) && next < this.#timerSlot) this.#arm(next);
  }
}

/** The instant at which a lease due in `inMs` is renewed. */
function slotFor(nowMs: number, inMs: number): number {
  const gridMs = inMs < SHORT_MS ? 1 : SLOT_MS;
  return Math.max(Math.ceil(nowMs), Math.floor((nowMs + inMs) / gridMs) * gridMs);
}
