/** What the playground can play: a world, the mistake that it makes visible, and how both end. */
import type { Script } from "@solehold/simulator";
import type { RuleSeed } from "./rule-seeds.ts";

/** How a run ends. The test plays every case and compares. */
export interface Ending {
  /** The oracle that objects; null where all promises hold. */
  readonly violation: string | null;
  /** Who believes to hold the lease, one after the other; null where the text does not say. */
  readonly holders: readonly string[] | null;
  /** Whether the guard refuses a write; null where the text does not say. */
  readonly refused: boolean | null;
}

export type World =
  | { readonly kind: "script"; readonly script: Script }
  | { readonly kind: "seed"; readonly seed: RuleSeed };

export interface Case {
  readonly id: string;
  readonly title: string;
  /** What will happen with the shipped code, and why. */
  readonly text: string;
  /** The planted bug that this world makes visible. */
  readonly bug: string;
  /** What the mistake is and what comes of it, in two sentences. */
  readonly bugText: string;
  readonly world: World;
  readonly shipped: Ending;
  readonly broken: Ending;
}
