export type { PlantedBug } from "./bugs/bug.ts";
export { type BugSearch, PLANTED_BUGS, plantedBug, searchBug } from "./bugs/registry.ts";
export {
  type CampaignOptions,
  type CampaignSummary,
  campaign,
  expectedSituations,
  missedSituations,
  realWait,
  SEEDS_TO_REACH_ALL,
} from "./campaign.ts";
export * from "./config.ts";
export { runCore } from "./core/run.ts";
export {
  DEFAULT_LIMITS,
  EXPLORABLE_BUGS,
  type ExploreResult,
  explore,
  SHIPPED_RULES,
} from "./explore/explore.ts";
export type { ExploreLimits, ExploreRules } from "./explore/world.ts";
export { runFull } from "./full/run.ts";
export type { GuardedWrite, Holding, Mutations } from "./mutations.ts";
export { SITUATIONS, type Situation } from "./oracles/oracle.ts";
export { type RegressionCase, regressionOf, replay, runOf } from "./regression.ts";
export type { RunOptions, RunResult, Tier, Violation } from "./result.ts";
export { type ShrunkCase, shrink } from "./shrink.ts";
export { report, timelineText } from "./timeline.ts";
export { SimulatedEnv } from "./world/env.ts";
export { Machine } from "./world/machine.ts";
export { Network, type NetworkOptions } from "./world/network.ts";
export { Choices, RandomStream } from "./world/random.ts";
export { World } from "./world/world.ts";
