/** A mistake that people really make, planted to see it found. */
import type { ClockRegime, Entry, Fault } from "../config.ts";
import type { Mutations } from "../mutations.ts";

export interface PlantedBug {
  readonly name: string;
  /** What is wrong, in a line. */
  readonly mistake: string;
  /** The oracles that may be the first to object; every one of them is right to. */
  readonly caughtBy: readonly string[];
  /** Found within this many seeds, or the check of the checks fails. */
  readonly withinSeeds: number;
  readonly clocks?: ClockRegime;
  readonly faults?: readonly Fault[];
  /** "server": it shows only where clients go through servers. */
  readonly entry?: Entry;
  readonly mutations: Mutations;
}

/** A wrong belief may be caught by any of these. */
export const BELIEF: readonly string[] = ["mutual-belief", "belief-has-record", "false-suspicion-safety"];
