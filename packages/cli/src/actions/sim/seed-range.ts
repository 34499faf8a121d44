/** Some neighbouring seeds, as a worker gets them, and how they are run, in whatever thread. */
import { serverGateway } from "@solehold/server/sim";
import {
  type CampaignSummary,
  type ClockRegime,
  campaign,
  type Fault,
  type Gateway,
} from "@solehold/simulator";

export interface SeedRange {
  readonly firstSeed: number;
  readonly seeds: number;
  readonly clocks?: ClockRegime;
  readonly faults?: readonly Fault[];
}

/** Every so many seeds one is run twice. Ranges are whole multiples, so the sample does not depend on workers. */
const DETERMINISM_EVERY = 50;

export const RANGE_SEEDS = 50;

let gateway: Gateway | null = null;

/** The real server in the simulated world; made when it is first needed. */
export function theGateway(): Gateway {
  gateway ??= serverGateway();
  return gateway;
}

export async function runRange(range: SeedRange): Promise<CampaignSummary> {
  return await campaign({ ...range, gateway: theGateway(), determinismEvery: DETERMINISM_EVERY });
}
