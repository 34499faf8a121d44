/**
 * What this process knows of a key that somebody waits for: what stands in the way, and until when. It learns from
 * decisions made here, from watch events and from reads, which may be late, doubled or out of order. It decides nothing.
 */
import { type LeaseRecord, type Reason, recordFence } from "../core/index.ts";
import type { CommandOutcome, LeaseView } from "../executor/index.ts";
import type { ExpectedEnd } from "./look-schedule.ts";
import { heldForMs } from "./outcomes.ts";

/** A lease is observed for a ttl, widened by the drift of the clocks. */
const OBSERVED_TTLS = 1.02;

export interface Obstacle {
  readonly reason: Reason;
  readonly heldBy: string | null;
  /** Since when, and until when, on the store's clock. */
  readonly heldSinceMs: number | null;
  readonly heldUntilMs: number | null;
  /** Until when on the own monotonic clock, as far as that can be known. */
  readonly untilMs: number | null;
}

/** "ended": the key may be free now. "reserved": it is kept for another process's ticket. */
export type RecordChange = "ended" | "reserved" | "nothing new";

export class KeyStatus {
  /** Looks in a row that found the same obstacle, since when, and how many of them came after its end. */
  looks = 0;
  overdueLooks = 0;
  #sameSinceMs = 0;
  #ttlMs = 0;
  #obstacle: Obstacle | null = null;
  #isKnown = false;
  #newestFence = 0n;
  /** The highest fence that was granted through this queue. */
  #ownFence: bigint;
  /** The write that ended the lease: a decision and a watch event tell of it twice. */
  #knownEnd: string | null = null;
  #successor: string | null = null;

  constructor(ownFence: bigint) {
    this.#ownFence = ownFence;
  }

  get obstacle(): Obstacle | null {
    return this.#obstacle;
  }

  /** The holder that the lease is being handed to, while it is. */
  get successor(): string | null {
    return this.#successor;
  }

  /** Whether the current holder got the lease through this queue: then its release passes here. */
  get isHeldHere(): boolean {
    return this.#obstacle !== null && this.#ownFence === this.#newestFence;
  }

  /** Whether anything was seen of the key yet. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  heldForMs(nowMs: number): number | null {
    const { untilMs = null } = this.#obstacle ?? {};
    return untilMs === null ? null : Math.max(0, untilMs - nowMs);
  }

  /**
   * When it is worth looking: at the end; once that has passed, now and then, and when the lease was observed for a whole
   * ttl without a renewal, which is how it ends where the store has no clock.
   */
  ends(nowMs: number): readonly ExpectedEnd[] {
    const inMs = this.heldForMs(nowMs);
    if (inMs === null) return [];
    const end = { inMs, overdueLooks: this.overdueLooks };
    const observedInMs = this.#sameSinceMs + this.#ttlMs * OBSERVED_TTLS - nowMs;
    return inMs > 0 || this.looks === 0 || observedInMs <= 0
      ? [end]
      : [end, { inMs: observedInMs, overdueLooks: 0 }];
  }

  /** Whether an obstacle is known that has not ended. */
  isBlocked(nowMs: number): boolean {
    return (this.#obstacle?.untilMs ?? Number.NEGATIVE_INFINITY) > nowMs;
  }

  /** The record that stands under the key, perhaps an old one. */
  onRecord(record: LeaseRecord | null, nowMs: number, ownTicket: string): RecordChange {
    this.#isKnown = true;
    if (record === null) {
      this.#obstacle = null;
      return "ended";
    }
    const fence = recordFence(record);
    if (fence < this.#newestFence) return "nothing new";
    if (record.state === "held") {
      // A late event of a grant that has ended since.
      if (fence === this.#newestFence && this.#knownEnd !== null) return "nothing new";
      this.#newestFence = fence;
      this.#knownEnd = null;
      this.#successor = null;
      const { holder, grantedAtMs, renewedAtMs, expiresAtMs } = record;
      this.#ttlMs = record.ttlMs;
      this.#block(heldBy(holder, grantedAtMs, expiresAtMs, nowMs + (expiresAtMs - renewedAtMs)));
      return "nothing new";
    }
    if (record.nonce === this.#knownEnd) return "nothing new";
    this.#newestFence = fence;
    this.#knownEnd = record.nonce;
    this.#successor = record.handoff?.successor ?? null;
    this.#obstacle = null;
    const { reservation, endedAtMs } = record;
    if (reservation === null || reservation.ticket === ownTicket) return "ended";
    const { deadlineMs } = reservation;
    const untilMs = nowMs + (deadlineMs - (endedAtMs ?? deadlineMs));
    this.#block({
      reason: "LEASE_RESERVED",
      heldBy: null,
      heldSinceMs: null,
      heldUntilMs: deadlineMs,
      untilMs,
    });
    return "reserved";
  }

  /** What a look found: a lease that lives. */
  onView({ holder, fence, ttlMs, grantedAtMs, expiresAtMs, remainingMs }: LeaseView, nowMs: number): void {
    this.#isKnown = true;
    this.#ttlMs = ttlMs;
    if (fence > this.#newestFence) {
      this.#newestFence = fence;
      this.#knownEnd = null;
    }
    this.#block(heldBy(holder, grantedAtMs, expiresAtMs, nowMs + remainingMs));
  }

  /** How an attempt ended. */
  onOutcome(outcome: CommandOutcome, nowMs: number): void {
    if (outcome.kind === "applied") {
      const { lease } = outcome.decision;
      this.#ownFence = recordFence(lease);
      this.onRecord(lease, nowMs, lease.ticket);
    }
    if (outcome.kind !== "refused" || outcome.decision.kind !== "denied") return;
    this.#isKnown = true;
    const { reason, heldBy: holder, heldUntilMs } = outcome.decision;
    this.#successor = reason === "LEASE_HANDOFF_PENDING" ? holder : null;
    const forMs = heldForMs(outcome);
    const sameHolder = this.#obstacle?.heldBy === holder ? this.#obstacle.heldSinceMs : null;
    const untilMs = forMs === null ? null : nowMs + forMs;
    this.#block({ reason, heldBy: holder, heldSinceMs: sameHolder, heldUntilMs, untilMs });
  }

  /** Events may be missing. */
  forget(): void {
    this.#isKnown = false;
  }

  /** A look or an attempt found the obstacle still there. */
  onLooked(nowMs: number): void {
    if (this.looks === 0) this.#sameSinceMs = nowMs;
    this.looks += 1;
    this.overdueLooks = this.isBlocked(nowMs) ? 0 : this.overdueLooks + 1;
  }

  /**
   * A lease that was not renewed for a whole ttl may be over whatever the clock says (the store has none, or it was set
   * back): only an attempt can find out, by having observed it.
   */
  isStale({ ttlMs }: LeaseView, nowMs: number): boolean {
    return this.looks > 0 && nowMs - this.#sameSinceMs > ttlMs;
  }

  #block(obstacle: Obstacle): void {
    const { heldUntilMs, untilMs = null } = this.#obstacle ?? {};
    if (obstacle.heldUntilMs !== heldUntilMs) this.looks = 0;
    // What was not prolonged does not end later than it seemed to before. Without a clock every read says "any moment now".
    const isSame = obstacle.heldUntilMs === heldUntilMs && obstacle.heldUntilMs !== null;
    const isEarlier = isSame && untilMs !== null && untilMs < (obstacle.untilMs ?? Number.POSITIVE_INFINITY);
    this.#obstacle = isEarlier ? { ...obstacle, untilMs } : obstacle;
  }
}

function heldBy(holder: string, heldSinceMs: number, heldUntilMs: number, untilMs: number): Obstacle {
  return { reason: "LEASE_HELD_BY_OTHER", heldBy: holder, heldSinceMs, heldUntilMs, untilMs };
}
