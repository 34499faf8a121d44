// Finds a short trace for each planted bug that the playground shows by a seed, and writes them to its data: the smallest
// of several failing seeds, shrunk, on which the shipped code keeps every promise. Takes some minutes; needs a build.
//   node scripts/rule-seeds.mjs [bug ...]
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drawConfig, plantedBug, runFull, shrink } from "@solehold/simulator";

const FILE = join(import.meta.dirname, "../packages/dashboard/src/playground/data/rule-seeds.json");
const CANDIDATES = 5;
/** A drawn world calls a process starved after two thousand turns of others; so many fill no picture. */
const MOST_TURNS = new Map([["nobody-yields", 24]]);

/** @typedef {{ bug: string, seed: number, clocks?: "bounded" | "unbounded", faults?: string[], mostTurns?: number, needed: string[], oracle: string }} RuleSeed */

/** @param {import("@solehold/simulator").RunOptions} options */
function isShowable({ seed, clocks, faults }) {
  const config = drawConfig(seed, { ...(clocks ? { clocks } : {}), ...(faults ? { faults } : {}) });
  // A browser has no synchronous signatures.
  return config.approvals === "no";
}

/** @param {string} name @returns {Promise<RuleSeed | null>} */
async function shortest(name) {
  const bug = plantedBug(name);
  const mostTurns = MOST_TURNS.get(name);
  const limits = {
    ...(mostTurns === undefined ? {} : { mostTurns }),
    ...(bug.clocks === undefined ? {} : { clocks: bug.clocks }),
    ...(bug.faults === undefined ? {} : { faults: bug.faults }),
  };
  let found = 0;
  let best = null;
  let leastSize = Number.POSITIVE_INFINITY;
  for (let seed = 1; seed <= bug.withinSeeds * 3 && found < CANDIDATES; seed += 1) {
    /** @type {import("@solehold/simulator").RunOptions} */
    const options = { seed, ...limits, auditIn: "memory", mutations: bug.mutations };
    if (!isShowable(options) || (await runFull(options)).violation === null) continue;
    const { needed, result } = await shrink(options);
    if (!bug.caughtBy.includes(result.violation?.oracle ?? "")) continue;
    const allowed = new Set(needed);
    const { mutations: _, ...shipped } = options;
    if ((await runFull({ ...shipped, allowed })).violation !== null) continue;
    found += 1;
    const size = needed.length * 20 + (result.trace?.messages.length ?? 0);
    if (size >= leastSize) continue;
    leastSize = size;
    best = { bug: name, seed, ...limits, needed, oracle: result.violation?.oracle ?? "" };
  }
  return best;
}

const known = /** @type {RuleSeed[]} */ (JSON.parse(readFileSync(FILE, "utf8")));
const wanted = process.argv.slice(2);
const names = wanted.length > 0 ? wanted : known.map(({ bug }) => bug);
for (const name of names) {
  const best = await shortest(name);
  console.log(name, best === null ? "NOT FOUND" : `seed ${best.seed}, ${best.needed.length} draws`);
  const index = known.findIndex(({ bug }) => bug === name);
  if (best !== null)
    known.splice(index < 0 ? known.length : index, index < 0 ? 0 : 1, /** @type {RuleSeed} */ (best));
  writeFileSync(FILE, `${JSON.stringify(known, null, 2)}\n`);
}
