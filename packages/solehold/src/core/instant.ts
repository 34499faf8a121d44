/**
 * What is known of the store's time at the moment of a decision: an interval, because a client that
 * decides between two replies knows the store's clock only within bounds.
 *
 * Another's lease is dead only by `earliestMs`; one's own is alive only by `latestMs`; an expiry is
 * written from `stampMs`, which is never before the true time. So a record never ends before the belief
 * of its holder does, however wide the interval is.
 */
export interface StoreInstant {
  readonly earliestMs: number;
  readonly latestMs: number;
  readonly stampMs: number;
}

/** The largest instant a Date can hold. Adding any allowed ttl to it still is an exact integer. */
export const MAX_INSTANT_MS = 8_640_000_000_000_000;

/** The store's own clock, read where the decision is made. */
export function exactly(nowMs: number): StoreInstant {
  return { earliestMs: nowMs, latestMs: nowMs, stampMs: nowMs };
}
