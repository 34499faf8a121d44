/**
 * When a command is asked to stop, and when it is killed, so that it is dead before its lease could
 * belong to another.
 *
 *   renewed                          SIGTERM        SIGKILL    belief ends   record ends
 *   |--------------------------------|--- grace ----|- margin -|- 1 % + 2 ms -|
 *
 * The margin is what a kill may take on a busy machine: the supervisor has to be scheduled, the signal has to
 * arrive, the process has to be torn down. What is left before SIGTERM must be long enough for a renewal
 * that fails once and is tried again, or one lost packet would cost the work.
 */
import { usageFailure } from "../failure.ts";
import { shortDuration } from "../format/duration.ts";

export const ON_LOSS_CHOICES = ["term", "kill", "ignore"] as const;
/** "term": SIGTERM, then SIGKILL. "kill": SIGKILL alone, as late as possible. "ignore": nothing. */
export type OnLoss = (typeof ON_LOSS_CHOICES)[number];

export interface StopPlan {
  readonly onLoss: OnLoss;
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  /** Between SIGKILL and the end of the holder's belief. */
  readonly marginMs: number;
}

export const MIN_TTL_MS = 1_000;
const MAX_DEFAULT_GRACE_MS = 5_000;
const DEFAULT_GRACE_PART = 1 / 5;
const MAX_GRACE_PART = 1 / 3;
const MARGIN_PART = 1 / 20;
const MIN_MARGIN_MS = 100;
const MAX_MARGIN_MS = 1_000;

/** Throws a usage failure when the ttl leaves no time to stop a command before its lease ends. */
export function stopPlan(options: {
  readonly ttlMs: number;
  readonly graceMs: number | null;
  readonly onLoss: OnLoss;
}): StopPlan {
  const { ttlMs, onLoss } = options;
  const defaultMs = Math.min(MAX_DEFAULT_GRACE_MS, Math.floor(ttlMs * DEFAULT_GRACE_PART));
  const graceMs = options.graceMs ?? defaultMs;
  const marginMs = Math.min(MAX_MARGIN_MS, Math.max(MIN_MARGIN_MS, ttlMs * MARGIN_PART));
  if (onLoss === "ignore") return { onLoss, graceMs, marginMs };
  if (ttlMs < MIN_TTL_MS) {
    throw usageFailure(
      `--ttl must be at least ${shortDuration(MIN_TTL_MS)}, or a command could not be stopped before its lease ends; got ${ttlMs}ms`,
    );
  }
  const maxGraceMs = Math.floor(ttlMs * MAX_GRACE_PART);
  if (graceMs > maxGraceMs) {
    throw usageFailure(
      `--grace must be at most a third of --ttl (${maxGraceMs}ms), got ${graceMs}ms: use --ttl ${Math.ceil(graceMs / MAX_GRACE_PART)}ms or a shorter grace`,
    );
  }
  return { onLoss, graceMs: onLoss === "kill" ? 0 : graceMs, marginMs };
}
