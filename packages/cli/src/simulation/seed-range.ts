/** Some neighbouring seeds, as they are given to a worker, and how they are run: in this thread or in that one. */
import type { CampaignSummary, ClockRegime, Fault, Gateway, Tier } from "@solehold/simulator";

export interface SeedRange {
  readonly tier: Tier;
  readonly firstSeed: number;
  readonly seeds: number;
  readonly clocks?: ClockRegime;
  readonly faults?: readonly Fault[];
}

/** Every so many seeds one is run twice. Ranges are whole multiples, so the sample does not depend on workers. */
const DETERMINISM_EVERY = 50;

export const RANGE_SEEDS: Readonly<Record<Tier, number>> = { core: 1_000, full: 50 };

let gateway: Gateway | null = null;

/** The real server in the simulated world; loaded when it is first needed. */
export async function theGateway(): Promise<Gateway> {
  const { serverGateway } = await import("@solehold/server/sim");
  gateway ??= serverGateway();
  return gateway;
}

export async function runRange(range: SeedRange): Promise<CampaignSummary> {
  const { campaign } = await import("@solehold/simulator");
  const servers = range.tier === "full" ? { gateway: await theGateway() } : {};
  return await campaign({ ...range, ...servers, determinismEvery: DETERMINISM_EVERY });
}
