/** All planted bugs, and the search for each: how many seeds until an oracle objects. */
import { given } from "solehold/internal";
import { runFull } from "../full/run.ts";
import type { Gateway } from "../net/gateway.ts";
import type { Violation } from "../result.ts";
import type { PlantedBug } from "./bug.ts";
import { DATA_BUGS } from "./data-bugs.ts";
import { PROCESS_BUGS } from "./process-bugs.ts";
import { PROTOCOL_BUGS } from "./protocol-bugs.ts";
import { SERVER_BUGS } from "./server-bugs.ts";
import { STORAGE_BUGS } from "./storage-bugs.ts";
import { TIME_BUGS } from "./time-bugs.ts";

export { SERVER_BUGS } from "./server-bugs.ts";

/** Those that show without servers. */
export const PLANTED_BUGS: readonly PlantedBug[] = [
  ...TIME_BUGS,
  ...PROTOCOL_BUGS,
  ...DATA_BUGS,
  ...STORAGE_BUGS,
  ...PROCESS_BUGS,
];

export interface BugSearch {
  readonly bug: string;
  /** The oracle that objected; null when none did. */
  readonly oracle: string | null;
  readonly foundAtSeed: number | null;
  readonly seedsTried: number;
  readonly violation: Violation | null;
}

export function plantedBug(name: string): PlantedBug {
  const all = [...PLANTED_BUGS, ...SERVER_BUGS];
  const bug = all.find((each) => each.name === name);
  if (bug !== undefined) return bug;
  throw new RangeError(`no bug is called '${name}': use one of ${all.map((each) => each.name).join(", ")}`);
}

/** Tries seed after seed, from `firstSeed`, until the bug shows or its bound is reached. */
export async function searchBug(bug: PlantedBug, gateway?: Gateway, firstSeed = 1): Promise<BugSearch> {
  const { name, mutations, faults, clocks, withinSeeds, entry = "library" } = bug;
  if (entry === "server" && gateway === undefined)
    throw new RangeError(`the bug '${name}' shows only through servers: give a gateway`);
  for (let tried = 1; tried <= withinSeeds; tried += 1) {
    const seed = firstSeed + tried - 1;
    const { violation } = await runFull({ seed, mutations, entry, ...given({ gateway, faults, clocks }) });
    if (violation === null) continue;
    return { bug: name, oracle: violation.oracle, foundAtSeed: seed, seedsTried: tried, violation };
  }
  return { bug: name, oracle: null, foundAtSeed: null, seedsTried: withinSeeds, violation: null };
}
