/**
 * Judging by observation, without trusting any clock but one's own: a version that stayed the same for a
 * whole ttl was not renewed in that time, so its holder's belief is over, whatever the record says.
 *
 * Counted from the RECEIPT of the first reply that showed the version (the holder may have written it at
 * the very moment before), on the observer's monotonic clock, widened by drift. It needs no second read:
 * the takeover is a conditional write on that same version, which fails if it moved in between.
 */
import { type DriftBound, type LeaseRecord, reservedUntil } from "../core/index.ts";

/** Whether a version that was first seen `standingMs` ago stood for as long as its record can bind anybody. */
export function isObservedOver(record: LeaseRecord, standingMs: number, drift: DriftBound): boolean {
  return standingMs >= bindingMs(record) * (1 + drift.driftRatio) + drift.tickMs;
}

/**
 * How long after its last write a record can bind anybody: its ttl and the delay after it, the time left to a successor or
 * a waiter, and a whole minimum hold. What is left of a hold is not known: when the record was last written is the latest
 * that it may have been, and that may be far from the truth.
 */
function bindingMs(record: LeaseRecord): number {
  const { endedAtMs, grantedAtMs, ttlMs, lockDelayMs, minHoldUntilMs } = record;
  const closedMs = minHoldUntilMs === null ? 0 : minHoldUntilMs - grantedAtMs;
  const untilMs = reservedUntil(record);
  const boundMs = untilMs === null || endedAtMs === null ? ttlMs + lockDelayMs : untilMs - endedAtMs;
  return Math.max(boundMs, closedMs);
}
