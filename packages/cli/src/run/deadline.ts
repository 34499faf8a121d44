/**
 * Until when a lease may be believed, as two readings of this machine's clocks, which all its processes
 * share. Either clock past its end is enough: the monotonic one stands still while the machine sleeps, the
 * wall clock may be set back.
 */
import type { Env } from "solehold/internal";

export interface Deadline {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Zero or less when it has passed. */
export function leftUntil(deadline: Deadline, env: Env): number {
  return Math.min(deadline.monotonicMs - env.monotonicMs(), deadline.wallMs - env.wallMs());
}

/**
 * The clocks are read BEFORE the remaining time: a pause between the two makes the deadline earlier, never
 * later.
 */
export function deadlineOf(lease: { remaining(): number }, env: Env): Deadline {
  const monotonicMs = env.monotonicMs();
  const wallMs = env.wallMs();
  const remainingMs = lease.remaining();
  return { monotonicMs: monotonicMs + remainingMs, wallMs: wallMs + remainingMs };
}
