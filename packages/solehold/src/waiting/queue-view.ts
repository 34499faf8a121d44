/** A wait queue as people see it: who waits, and for how long about. */
import type { LeasePolicy } from "../core/index.ts";
import type { SlotsStatus } from "./slots-status.ts";
import type { Waiter } from "./waiter.ts";

export interface QueuedWaiter {
  /** 0 is next. */
  readonly position: number;
  readonly holder: string;
  readonly waitedMs: number;
  /** If nobody renews, and everybody ahead keeps the lease for its whole ttl. */
  readonly expectedWaitMs: number;
}

export interface QueueView {
  readonly waiting: number;
  readonly heldBy: string | null;
  readonly heldUntilMs: number | null;
  /** The first hundred. */
  readonly waiters: readonly QueuedWaiter[];
}

export const EMPTY_QUEUE: QueueView = { waiting: 0, heldBy: null, heldUntilMs: null, waiters: [] };
const MAX_SHOWN = 100;

export function queueView(
  waiting: readonly Waiter[],
  status: SlotsStatus,
  nowMs: number,
  policy: LeasePolicy,
): QueueView {
  let expectedWaitMs = Math.ceil(status.heldForMs(nowMs) ?? 0);
  const waiters: QueuedWaiter[] = [];
  for (const [position, { request, sinceMs }] of waiting.slice(0, MAX_SHOWN).entries()) {
    const { holder, ttlMs = policy.defaultTtlMs } = request;
    waiters.push({ position, holder, waitedMs: Math.floor(nowMs - sinceMs), expectedWaitMs });
    expectedWaitMs += ttlMs;
  }
  const { heldBy = null, heldUntilMs = null } = status.obstacle ?? {};
  return { waiting: waiting.length, heldBy, heldUntilMs, waiters };
}
