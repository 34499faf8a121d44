/** Seed after seed: counts, the situations that were reached, and the first failures. */

import { given, settle } from "solehold/internal";
import type { ClockRegime, Fault } from "./config.ts";
import { runFull } from "./full/run.ts";
import type { Gateway } from "./net/gateway.ts";
import { SERVER_SITUATIONS, SITUATIONS, type Situation } from "./oracles/oracle.ts";
import type { RunResult } from "./result.ts";

export interface CampaignOptions {
  readonly firstSeed: number;
  /** Infinity to go on until `enough` says so. */
  readonly seeds: number;
  readonly clocks?: ClockRegime;
  readonly faults?: readonly Fault[];
  /** Brings servers into the world of a part of the seeds. */
  readonly gateway?: Gateway;
  /** Every so many seeds one is run twice, to see that both runs are the same; 0 for never. */
  readonly determinismEvery: number;
  /** Asked after every seed. */
  readonly enough?: (done: CampaignSummary) => boolean | Promise<boolean>;
}

export interface CampaignSummary {
  readonly seeds: number;
  readonly events: number;
  readonly violations: number;
  readonly failures: readonly RunResult[];
  readonly sometimes: Readonly<Record<Situation, number>>;
  /** Situations that a run of this size must reach and that this one did not: it fails by them. */
  readonly missed: readonly Situation[];
  /** Seeds whose second run differed from their first. */
  readonly nondeterministic: readonly number[];
  readonly givenUp: number;
}

const MOST_FAILURES = 10;

/**
 * From so many seeds on, a situation that was never reached fails the run: the rarest of them is reached
 * several times in a tenth of this. A smaller run, or one whose faults were limited, only reports.
 */
export const SEEDS_TO_REACH_ALL = 1_000;

/** What a run of some length must reach at least once. */
export function expectedSituations(gateway?: Gateway): readonly Situation[] {
  return gateway === undefined ? SITUATIONS : [...SITUATIONS, ...SERVER_SITUATIONS];
}

/** What a run of so many seeds should have reached and did not. */
export function missedSituations(
  seeds: number,
  counts: Readonly<Partial<Record<Situation, number>>>,
): readonly Situation[] {
  if (seeds < SEEDS_TO_REACH_ALL) return [];
  return (Object.keys(counts) as Situation[]).filter((situation) => counts[situation] === 0);
}

export async function campaign(options: CampaignOptions): Promise<CampaignSummary> {
  const { firstSeed, determinismEvery, clocks, faults, gateway } = options;
  const limits = given({ gateway, clocks, faults });
  const counts = Object.fromEntries(expectedSituations(gateway).map((each) => [each, 0])) as Record<
    Situation,
    number
  >;
  const failures: RunResult[] = [];
  const nondeterministic: number[] = [];
  let [seeds, events, violations, givenUp] = [0, 0, 0, 0];
  const summary = (): CampaignSummary => ({
    seeds,
    events,
    violations,
    failures,
    sometimes: counts,
    missed: faults === undefined ? missedSituations(seeds, counts) : [],
    nondeterministic,
    givenUp,
  });
  for (let seed = firstSeed; seeds < options.seeds; seed += 1) {
    const result = await runFull({ seed, ...limits });
    seeds += 1;
    events += result.events;
    givenUp += result.givenUp;
    for (const [situation, count] of result.sometimes) counts[situation] = (counts[situation] ?? 0) + count;
    if (determinismEvery > 0 && seeds % determinismEvery === 0) {
      const again = await runFull({ seed, ...limits });
      if (again.hash !== result.hash || again.events !== result.events) nondeterministic.push(seed);
    }
    if (result.violation !== null) {
      violations += 1;
      // Once more, with the time-line that the first run did without.
      if (failures.length < MOST_FAILURES) failures.push(await runFull({ seed, ...limits, record: "yes" }));
    }
    if (options.enough !== undefined && (await options.enough(summary()))) break;
  }
  return summary();
}

/** Runs of neighbouring seeds as one, in the order given: the result does not depend on the threads that made them. */
export function mergeSummaries(
  parts: readonly CampaignSummary[],
  faults?: readonly Fault[],
): CampaignSummary {
  const [first, ...others] = parts;
  if (first === undefined) throw new RangeError("there is nothing to merge");
  return others.reduce((sum, part) => {
    const names = Object.keys(sum.sometimes) as Situation[];
    const counts = names.map((name) => [name, sum.sometimes[name] + part.sometimes[name]]);
    const sometimes = Object.fromEntries(counts) as CampaignSummary["sometimes"];
    const seeds = sum.seeds + part.seeds;
    return {
      seeds,
      events: sum.events + part.events,
      violations: sum.violations + part.violations,
      failures: [...sum.failures, ...part.failures].slice(0, MOST_FAILURES),
      sometimes,
      missed: faults === undefined ? missedSituations(seeds, sometimes) : [],
      nondeterministic: [...sum.nondeterministic, ...part.nondeterministic],
      givenUp: sum.givenUp + part.givenUp,
    };
  }, first);
}

/** A turn of the real event loop, between two seeds: a run itself never gives one. */
export function realWait(): Promise<void> {
  return settle();
}
