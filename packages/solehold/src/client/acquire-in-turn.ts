/**
 * An acquire that waits for its turn, in the queue of its executor. A queue on a server is lost with the connection, and
 * takes only waits of a bounded length: then the acquire queues again, with the same token.
 */
import type { LeaseKey } from "../core/index.ts";
import { delay, type Env } from "../env/index.ts";
import type { AppliedOutcome, CommandOutcome, WaitOptions } from "../executor/index.ts";
import { isWorthWaiting, mayBeGranted } from "../waiting/index.ts";
import { failureOf, timeoutOf } from "./outcome-errors.ts";

export interface AcquireInTurn {
  readonly key: LeaseKey;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  attempt(wait: WaitOptions): Promise<CommandOutcome>;
  /** The wait failed, and an attempt may have been granted without an answer. */
  abandon(): void;
}

const RETRY_UNAVAILABLE_MS = 200;

export async function acquireInTurn(env: Env, acquire: AcquireInTurn): Promise<AppliedOutcome> {
  const { key, waitMs, signal } = acquire;
  const startedMs = env.monotonicMs();
  let perhapsGranted = false;
  try {
    for (;;) {
      const leftMs = Math.max(0, waitMs - (env.monotonicMs() - startedMs));
      const outcome = await acquire.attempt({ waitMs: leftMs, ...(signal === undefined ? {} : { signal }) });
      if (outcome.kind === "applied") return outcome;
      perhapsGranted ||= mayBeGranted(outcome);
      signal?.throwIfAborted();
      if (!isWorthWaiting(outcome)) throw failureOf(key, outcome);
      if (env.monotonicMs() - startedMs >= waitMs) throw timeoutOf(key, outcome, waitMs);
      if (outcome.kind === "unsettled") await delay(env, RETRY_UNAVAILABLE_MS, signal);
    }
  } catch (error) {
    if (perhapsGranted) acquire.abandon();
    throw error;
  }
}
