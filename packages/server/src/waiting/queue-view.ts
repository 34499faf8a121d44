/** A line as people see it: who waits, and for how long about. */
import type { LeasePolicy } from "solehold";
import type { Line } from "./line.ts";

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

export interface Clocks {
  readonly storeNowMs: number;
  readonly monotonicMs: number;
}

const MAX_SHOWN = 100;

export function queueView(line: Line | undefined, clocks: Clocks, policy: LeasePolicy): QueueView {
  const { storeNowMs, monotonicMs } = clocks;
  const heldUntilMs = line?.obstacle?.heldUntilMs ?? null;
  let expectedWaitMs = heldUntilMs === null ? 0 : Math.max(0, heldUntilMs - storeNowMs);
  const waiters: QueuedWaiter[] = [];
  for (const [position, { request, sinceMs }] of (line?.waiters ?? []).slice(0, MAX_SHOWN).entries()) {
    const { holder, ttlMs = policy.defaultTtlMs } = request;
    waiters.push({ position, holder, waitedMs: Math.floor(monotonicMs - sinceMs), expectedWaitMs });
    expectedWaitMs += ttlMs;
  }
  return {
    waiting: line?.waiters.length ?? 0,
    heldBy: line?.obstacle?.heldBy ?? null,
    heldUntilMs,
    waiters,
  };
}
