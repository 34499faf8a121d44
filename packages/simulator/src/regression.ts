/** A failure that was found once, as a file that people can read and tests replay for ever. */
import { given } from "solehold/internal";
import { plantedBug } from "./bugs/registry.ts";
import type { ClockRegime, Entry, Fault, SimConfig } from "./config.ts";
import { runFull } from "./full/run.ts";
import type { Gateway } from "./net/gateway.ts";
import type { RunOptions, RunResult } from "./result.ts";
import type { ShrunkCase } from "./shrink.ts";
import { timelineText } from "./timeline.ts";

export interface RegressionCase {
  readonly title: string;
  readonly seed: number;
  readonly clocks?: ClockRegime;
  readonly faults?: readonly Fault[];
  /** "server": it goes through servers, and needs a gateway to be played. */
  readonly entry?: Entry;
  /** Older cases are of audits in memory. */
  readonly auditIn?: SimConfig["auditIn"];
  /** The planted bug under which it fails; null for a bug of ours that was fixed since. */
  readonly bug: string | null;
  /** The oracle that objects while the bug is there. */
  readonly oracle: string;
  /** The faults and operations that are needed. */
  readonly needed: readonly string[];
  /** What happened, for people; not read by tests. */
  readonly timeline: readonly string[];
}

export function regressionOf(
  title: string,
  bug: string | null,
  options: RunOptions,
  shrunk: ShrunkCase,
): RegressionCase {
  const { result, needed } = shrunk;
  return {
    title,
    seed: result.seed,
    ...given({ clocks: options.clocks, faults: options.faults }),
    ...(result.config.entry === "server" ? { entry: "server" } : {}),
    auditIn: result.config.auditIn,
    bug,
    oracle: result.violation?.oracle ?? "",
    needed,
    timeline: timelineText(result).split("\n"),
  };
}

/** Plays the case: "with" its planted bug, or "without", as the code is now. */
export async function replay(
  kept: RegressionCase,
  bug: "with" | "without",
  gateway?: Gateway,
): Promise<RunResult> {
  const { seed, clocks, faults, needed, auditIn = "memory" } = kept;
  const mutations = bug === "with" && kept.bug !== null ? plantedBug(kept.bug).mutations : {};
  return await runFull({
    seed,
    mutations,
    allowed: new Set(needed),
    record: "yes",
    auditIn,
    entry: kept.entry ?? "library",
    ...given({ gateway, clocks, faults }),
  });
}
