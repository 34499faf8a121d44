/**
 * A BullMQ processor that runs under a lease: one job at a time over all workers and all queues that name the same lease,
 * also when BullMQ took a job for stalled and started it again while the first run was only slow.
 *
 * A job that finds the lease taken goes back to the queue as delayed; that uses up none of its attempts. A job whose lease
 * was lost fails, and BullMQ repeats it as `attempts` says.
 */
import { LeaseHeldError, type Leases } from "../client/index.ts";
import { realEnv } from "../env/index.ts";
import { checkHeld, type Held, type HeldOptions, runHeld } from "./held.ts";

export type { Held, HeldOptions, NameOf } from "./held.ts";

/** The part of BullMQ's job that is used. */
export interface BullJobLike {
  moveToDelayed(timestampMs: number, token?: string): Promise<void>;
}

/** While somebody holds the lease: it may be released at any time. */
const RETRY_MS = 1_000;

/** `new Worker("reports", singletonProcessor(leases, { name: "reports" }, async (job, { lease, signal }) => …), …)`. */
export function singletonProcessor<Job extends BullJobLike, Result>(
  leases: Leases,
  options: HeldOptions<Job>,
  work: (job: Job, held: Held) => Promise<Result>,
): (job: Job, token?: string, signal?: AbortSignal) => Promise<Result> {
  checkHeld("singletonProcessor", leases, options, work);
  // BullMQ gives a signal to processors that declare three parameters.
  return async (job, token, signal) => {
    let hasBegun = false;
    try {
      return await runHeld(leases, options, job, signal, (held) => {
        hasBegun = true;
        return work(job, held);
      });
    } catch (error) {
      // Work may meet another lease that is taken: that is its own failure.
      if (hasBegun || !(error instanceof LeaseHeldError)) throw error;
      const { holder, retryAfterMs } = error;
      const delayMs = holder === null ? (retryAfterMs ?? RETRY_MS) : RETRY_MS;
      await job.moveToDelayed(realEnv.wallMs() + delayMs, token);
      throw new JobDelayedError(error);
    }
  };
}

/** BullMQ knows by this name that the job is where it belongs. */
class JobDelayedError extends Error {
  override readonly name = "DelayedError";

  constructor(cause: LeaseHeldError) {
    super(cause.message, { cause });
  }
}
