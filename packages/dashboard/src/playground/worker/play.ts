/** Plays a case: the shipped code, or with its bug, in its world. The same in the worker and in the tests. */
import { plantedBug, runFull, runScript, type Script, type Trace } from "@solehold/simulator";
import type { RuleSeed } from "../data/rule-seeds.ts";

export type Played =
  | { readonly kind: "script"; readonly script: Script }
  /** Without `needed` the whole world of the seed. */
  | {
      readonly kind: "seed";
      readonly seed: Pick<RuleSeed, "seed" | "clocks" | "faults" | "mostTurns"> & {
        readonly needed?: readonly string[];
      };
    };

/** `bug`: null for the shipped code. */
export async function play(world: Played, title: string, bug: string | null): Promise<Trace> {
  const mutations = bug === null ? {} : plantedBug(bug).mutations;
  if (world.kind === "script") return await runScript(world.script, { title, mutations });
  const { needed, ...drawn } = world.seed;
  const { trace } = await runFull({
    ...drawn,
    mutations,
    record: "yes",
    auditIn: "memory",
    entry: "library",
    ...(needed === undefined ? {} : { allowed: new Set(needed) }),
  });
  if (trace === null) throw new Error("a recorded run has a trace");
  return { ...trace, title };
}
