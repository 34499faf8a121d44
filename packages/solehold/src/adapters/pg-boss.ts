/**
 * A pg-boss handler that runs under a lease: one at a time over all workers and all queues that name the same lease. Also
 * when pg-boss gave up on a job after `expireInSeconds` and started it again: its handler may still be running, and keeps
 * the lease until it has ended.
 *
 * A job that does not get the lease within `wait`, and one whose lease was lost, fails; pg-boss repeats it as `retryLimit`
 * and `retryDelay` say.
 */
import type { Leases } from "../client/index.ts";
import { checkHeld, type Held, type HeldOptions, runHeld } from "./held.ts";

export type { Held, HeldOptions, NameOf } from "./held.ts";

/** `boss.work("reports", singletonHandler(leases, { name: "reports" }, async (jobs, { lease, signal }) => …))`. */
export function singletonHandler<Job, Result>(
  leases: Leases,
  options: HeldOptions<Job[]>,
  work: (jobs: Job[], held: Held) => Promise<Result>,
): (jobs: Job[]) => Promise<Result> {
  checkHeld("singletonHandler", leases, options, work);
  return async (jobs) => await runHeld(leases, options, jobs, undefined, (held) => work(jobs, held));
}
