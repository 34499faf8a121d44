/**
 * When the first waiter looks at the key without having been woken. With a watch a look is insurance against lost events;
 * without one it is the only way to notice a release. The end of the current lease is an appointment in both cases.
 */
import { type Env, jittered } from "../env/index.ts";

export const RETRY_UNAVAILABLE_MS = 200;
const LOOK_WITH_WATCH_MS = 2_000;
/** While nobody knows when the current lease ends. */
const FIRST_LOOK_WITH_WATCH_MS = 500;
const FIRST_LOOK_WITHOUT_WATCH_MS = 50;
const SLOWEST_LOOK_MS = 1_000;
/** All processes see a lease end at the same instant; only one can have it. */
const SPREAD_AT_EXPIRY_MS = 10;

export interface Looking {
  /** How long the current lease lasts; null where that is not known. */
  readonly heldForMs: number | null;
  readonly looks: number;
  /** How many looks in a row came after the end of the lease, and did not find the key free. */
  readonly overdueLooks: number;
  readonly watched: boolean;
}

export function lookAgainMs(env: Env, { heldForMs, looks, overdueLooks, watched }: Looking): number {
  const withWatchMs = heldForMs === null ? FIRST_LOOK_WITH_WATCH_MS : LOOK_WITH_WATCH_MS;
  const slowestMs = watched ? withWatchMs : growing(FIRST_LOOK_WITHOUT_WATCH_MS, looks);
  const untilEndMs = heldForMs === null ? Number.POSITIVE_INFINITY : Math.max(0, heldForMs);
  // An end that has passed and still stands in the way (a store without a clock must be observed) is no appointment.
  const spreadMs = growing(SPREAD_AT_EXPIRY_MS, overdueLooks);
  return Math.min(jittered(env, slowestMs, 0.3), untilEndMs + 1 + env.random() * spreadMs);
}

function growing(firstMs: number, times: number): number {
  return Math.min(SLOWEST_LOOK_MS, firstMs * 2 ** Math.min(times, 10));
}
