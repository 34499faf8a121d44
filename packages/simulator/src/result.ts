/** What a run says about itself. */
import type { ClockRegime, Entry, Fault, SimConfig } from "./config.ts";
import type { Mutations } from "./mutations.ts";
import type { Gateway } from "./net/gateway.ts";
import type { Situation } from "./oracles/oracle.ts";
import type { Trace } from "./trace/trace.ts";
import type { ClockStart } from "./world/clock.ts";
import type { Allowed } from "./world/random.ts";
import type { TimelineEntry } from "./world/world.ts";

export interface RunOptions {
  readonly seed: number;
  readonly clocks?: ClockRegime;
  readonly faults?: readonly Fault[];
  /** Only these removable draws may happen: how a shrunk case is replayed. */
  readonly allowed?: Allowed;
  /** "yes" keeps a time-line for people. */
  readonly record?: "yes" | "no";
  readonly mutations?: Mutations;
  /** Brings lease servers into the world; a part of the seeds then goes through them. */
  readonly gateway?: Gateway;
  /** Whether this run goes through servers; drawn by the seed when there is a gateway. */
  readonly entry?: Entry;
  /** Where the audit is; drawn by the seed when not given. */
  readonly auditIn?: SimConfig["auditIn"];
  /** How many turns of others may pass while a process waits: fewer show in a short trace that it starves. */
  readonly mostTurns?: number;
  /** A world that was written by hand; the seed draws only what it leaves open. */
  readonly given?: GivenWorld;
}

export interface GivenWorld {
  readonly config: SimConfig;
  /** Of the nodes. */
  readonly names: readonly string[];
  /** By machine, with the store's under `store`. */
  readonly clocks: ReadonlyMap<string, ClockStart>;
}

export interface Violation {
  readonly oracle: string;
  readonly message: string;
  readonly atMs: number;
}

export interface RunResult {
  readonly seed: number;
  readonly config: SimConfig;
  readonly violation: Violation | null;
  readonly hash: number;
  readonly events: number;
  /** The removable draws that happened: what a shrinker can take away. */
  readonly fired: readonly string[];
  readonly sometimes: ReadonlyMap<Situation, number>;
  readonly timeline: readonly TimelineEntry[];
  /** Null unless the run was recorded. */
  readonly trace: Trace | null;
  /** Checks that were given up because they would have taken too long. */
  readonly givenUp: number;
}
