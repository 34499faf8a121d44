/** Worlds that a seed draws, shrunk to the draws that are needed to show a planted bug; made by scripts/rule-seeds.mjs. */
import type { ClockRegime, Fault } from "@solehold/simulator";
import seeds from "./rule-seeds.json" with { type: "json" };

export interface RuleSeed {
  readonly bug: string;
  readonly seed: number;
  readonly clocks?: ClockRegime;
  readonly faults?: readonly Fault[];
  /** So few that a short trace shows a process starve. */
  readonly mostTurns?: number;
  /** The faults and operations that are needed. */
  readonly needed: readonly string[];
  /** The oracle that objects first. */
  readonly oracle: string;
}

const BY_BUG = new Map((seeds as readonly RuleSeed[]).map((each) => [each.bug, each]));

export function ruleSeed(bug: string): RuleSeed {
  const seed = BY_BUG.get(bug);
  if (seed === undefined)
    throw new RangeError(`no seed is known for '${bug}': run scripts/rule-seeds.mjs ${bug}`);
  return seed;
}
