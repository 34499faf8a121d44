export type { PlantedBug } from "./bugs/bug.ts";
export { type BugSearch, PLANTED_BUGS, plantedBug, SERVER_BUGS, searchBug } from "./bugs/registry.ts";
export {
  type CampaignOptions,
  type CampaignSummary,
  campaign,
  expectedSituations,
  mergeSummaries,
  missedSituations,
  realWait,
  SEEDS_TO_REACH_ALL,
} from "./campaign.ts";
export * from "./config.ts";
export { EXPLORABLE_BUGS, type ExplorableBug } from "./explore/bugs.ts";
export { type ExploreOptions, type ExploreResult, explore } from "./explore/explore.ts";
export {
  EXPLORE_WORLDS,
  type ExploreRules,
  type ExploreWorld,
  type ExploreWorldName,
  SHIPPED_RULES,
} from "./explore/rules.ts";
export { runFull } from "./full/run.ts";
export type { GuardedStep, Holding, Mutations } from "./mutations.ts";
export type {
  Endpoint,
  EndpointHost,
  Gateway,
  HttpAnswerText,
  HttpRequestText,
  ServerSocket,
} from "./net/gateway.ts";
export { type KeyState, type ModelOperation, START, type Transition } from "./oracles/lease-model.ts";
export { checkLinearizable, type LinearizabilityVerdict } from "./oracles/linearizability.ts";
export { SERVER_SITUATIONS, SITUATIONS, type Situation } from "./oracles/oracle.ts";
export { type RegressionCase, regressionOf, replay } from "./regression.ts";
export type { RunOptions, RunResult, Violation } from "./result.ts";
export { runScript, type ScriptRun } from "./script/run.ts";
export {
  isWithinBounds,
  SCRIPT_FAULTS,
  SCRIPT_KEY,
  type Script,
  type ScriptFault,
  type ScriptFaultKind,
  type ScriptStep,
  scriptProblem,
} from "./script/script.ts";
export { type ShrunkCase, shrink } from "./shrink.ts";
export { report, timelineText } from "./timeline.ts";
export * from "./trace/trace.ts";
export { SimulatedEnv } from "./world/env.ts";
export { Machine } from "./world/machine.ts";
export { Network, type NetworkOptions } from "./world/network.ts";
export { Choices, RandomStream } from "./world/random.ts";
export { World } from "./world/world.ts";
