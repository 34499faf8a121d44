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

/** When a lease that stands in the way ends. */
export interface ExpectedEnd {
  readonly inMs: number;
  /** How many looks in a row came after that end, and did not find the key free. */
  readonly overdueLooks: number;
}

export interface Looking {
  /** Of each lease in the way whose end is known: one, or that of every slot. */
  readonly ends: readonly ExpectedEnd[];
  readonly looks: number;
  readonly watched: boolean;
}

export function lookAgainMs(env: Env, { ends, looks, watched }: Looking): number {
  const withWatchMs = ends.length === 0 ? FIRST_LOOK_WITH_WATCH_MS : LOOK_WITH_WATCH_MS;
  const slowestMs = watched ? withWatchMs : growing(FIRST_LOOK_WITHOUT_WATCH_MS, looks);
  // An end that has passed and still stands in the way (a store without a clock must be observed) is no appointment.
  const appointments = ends.map(
    ({ inMs, overdueLooks }) => inMs + 1 + env.random() * growing(SPREAD_AT_EXPIRY_MS, overdueLooks),
  );
  return Math.min(jittered(env, slowestMs, 0.3), ...appointments);
}

function growing(firstMs: number, times: number): number {
  return Math.min(SLOWEST_LOOK_MS, firstMs * 2 ** Math.min(times, 10));
}
