/**
 * A croner callback that runs once per due time, whichever replica fires first. The period is what the pattern says: the
 * time until the next run. Nobody has to keep it in step with the pattern.
 */
import type { Lease, Leases, OncePerOptions, OncePerResult } from "../client/index.ts";
import { MAX_DURATION_MS } from "../core/index.ts";
import { checkHeld } from "./held.ts";

/** The part of croner's job that is used. */
export interface CronerJobLike {
  msToNext(): number | null;
}

export interface OncePerRunOptions<Result> extends Omit<OncePerOptions, "period"> {
  readonly name: string;
  /** For a job without a next run: a date, or the last of `maxRuns`. Otherwise the pattern says it. */
  readonly period?: OncePerOptions["period"];
  /** After each due time: whether it ran here, and why not. */
  readonly onOutcome?: (outcome: OncePerResult<Result>) => void;
}

/** `new Cron("0 3 * * *", oncePerRun(leases, { name: "reports/nightly" }, async (lease) => …))`. */
export function oncePerRun<Result>(
  leases: Leases,
  options: OncePerRunOptions<Result>,
  work: (lease: Lease) => Result | Promise<Result>,
): (job: CronerJobLike) => Promise<void> {
  checkHeld("oncePerRun", leases, options, work);
  const { name, period: given, onOutcome, ...rest } = options;
  return async (job) => {
    const toNextMs = job.msToNext();
    if (given === undefined && toNextMs === null)
      throw new RangeError(
        `oncePerRun: the job of '${name}' has no next run to tell its period by: set period, such as "1h"`,
      );
    const period = given ?? Math.min(toNextMs ?? 0, MAX_DURATION_MS);
    const outcome = await leases.runOncePer(name, { ...rest, period }, work);
    onOutcome?.(outcome);
  };
}
