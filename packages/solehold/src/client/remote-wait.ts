/** Acquiring with patience over a server, which keeps one line for all its clients. */
import { delay, type Env } from "../env/index.ts";
import type { AppliedOutcome } from "../executor/index.ts";
import { failureOf, isWorthWaiting, RETRY_UNAVAILABLE_MS, timeoutOf } from "./outcome-errors.ts";
import { mayBeGranted, type Patience } from "./wait-queues.ts";

export interface PatienceWithServer extends Patience {
  /** The wait failed, and an attempt may have been granted although nobody heard of it. */
  abandon(): void;
}

/** A connection that breaks has to queue again. */
export async function waitInServersLine(env: Env, patience: PatienceWithServer): Promise<AppliedOutcome> {
  const { key, waitMs, signal } = patience;
  const startedMs = env.monotonicMs();
  let perhapsGranted = false;
  try {
    for (;;) {
      const leftMs = Math.max(0, waitMs - (env.monotonicMs() - startedMs));
      const outcome = await patience.attempt({ waitMs: leftMs, ...(signal === undefined ? {} : { signal }) });
      if (outcome.kind === "applied") return outcome;
      perhapsGranted ||= mayBeGranted(outcome);
      signal?.throwIfAborted();
      if (!isWorthWaiting(outcome)) throw failureOf(key, outcome);
      if (env.monotonicMs() - startedMs >= waitMs) throw timeoutOf(key, outcome, waitMs);
      if (outcome.kind === "unsettled") await delay(env, RETRY_UNAVAILABLE_MS, signal);
    }
  } catch (error) {
    if (perhapsGranted) patience.abandon();
    throw error;
  }
}
