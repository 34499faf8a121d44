/**
 * What every oracle sees of a run, and how it objects. An oracle watches one promise; it looks at the
 * store's truth, at what holders believe and at what callers were answered, never into the code under test.
 */
import type { CommandOutcome, LeaseKey, LeaseRecord, LeaseRequest, LeaseView } from "solehold/internal";
import type { Expectations, SimConfig } from "../config.ts";
import type { AppliedWrite } from "../store/engine.ts";
import type { Machine } from "../world/machine.ts";

/** Something that may believe that it holds a lease. */
export interface Believer {
  readonly who: string;
  readonly key: LeaseKey;
  readonly fence: bigint;
  /** Its signal has aborted, or its process is dead. Looking does not change anything. */
  ended(): boolean;
  /** Asks it. A holder that notices by being asked that its lease is over ends here. */
  believes(): boolean;
  /** Its process cannot act now: paused or suspended. */
  frozen(): boolean;
  /** Its own clocks are past the undiminished end of its lease, and it had time to notice. */
  overdue(): boolean;
}

/** One call of a client, from its start to its end; both ends are null while it is under way. */
export interface CallRecord {
  readonly id: number;
  readonly process: string;
  readonly request: LeaseRequest | { readonly op: "get"; readonly key: LeaseKey };
  /** "queued": it waits at a server, which may answer without having asked the store for it. */
  readonly patience: "at once" | "queued";
  /** The generation that the caller's token stands for; null when it has none. */
  readonly generation: bigint | null;
  readonly startedMs: number;
  endedMs: number | null;
  outcome: CommandOutcome | { readonly kind: "view"; readonly view: LeaseView | null } | null;
}

/** A write that took effect and whose sender got no answer in time. */
export interface LostEffect {
  readonly process: string;
  readonly keyId: string;
  readonly op: "acquire" | "release" | "revoke";
  readonly generation: bigint;
  readonly holder: string;
  readonly atMs: number;
}

/** A write, or a raise of the fence before one. */
export interface ResourceStep {
  readonly kind: "raise" | "write";
  readonly key: LeaseKey;
  readonly fence: bigint;
  readonly accepted: boolean;
}

/** The run as oracles see it. */
export interface OracleContext {
  readonly config: SimConfig;
  /** What the processes compete for. */
  readonly keys: readonly LeaseKey[];
  readonly expectations: Expectations;
  readonly nowMs: () => number;
  readonly storeNowMs: () => number;
  readonly recordOf: (key: LeaseKey) => LeaseRecord | null;
  /** Where a process runs, or ran. */
  readonly machineOf: (process: string) => Machine | null;
  /** Those that have not ended, by key. */
  readonly believers: ReadonlyMap<string, readonly Believer[]>;
  readonly calls: readonly CallRecord[];
  /** Known when everything is over. */
  readonly lostEffects: () => readonly LostEffect[];
  /** Reports a broken promise; the run ends after the first. */
  readonly fail: (oracle: string, message: string) => void;
  /** Counts that a situation worth testing was reached. */
  readonly sometimes: (situation: Situation) => void;
}

export interface Oracle {
  readonly name: string;
  onWrite?(write: AppliedWrite): void;
  onCallEnd?(call: CallRecord): void;
  onResourceStep?(step: ResourceStep): void;
  afterEvent?(): void;
  /** After the world has healed and everybody has let go. */
  atEnd?(): void;
}

/** Situations that a thorough run must reach; one that is never reached means that nothing tests it. */
export const SITUATIONS = [
  "a lease was taken over after its holder ran out of time",
  "a lease was taken over while its last holder was frozen",
  "a lease was taken over after its last holder was suspended",
  "a lease was taken over by observation, without a clock",
  "a released lease was taken at once",
  "a handoff reached its successor",
  "a handoff deadline passed and another took the lease",
  "a lease was released before its minimum hold was over",
  "a revoked lease was claimed after its holder's time",
  "an unknown outcome was settled as applied",
  "an unknown outcome was settled as not applied",
  "a caller got an unknown outcome",
  "a late request met a newer version",
  "a repeated call got the same grant",
  "an idempotency key with other arguments was refused",
  "a waiter at the head of the queue died or gave up",
  "a waiter was granted after waiting",
  "a released lease was kept for a waiter, who took it",
  "a waiter did not come for what was kept, and another took it",
  "all slots of a name were held at once",
  "several names were held together after waiting for one of them",
  "a lease was taken on a watch event alone",
  "a try on a watch event alone came too late",
  "a lease was lost because the store did not answer",
  "a lease was broken",
  "a lease was adopted",
  "a record was collected and its key granted again",
  "a zombie's write was refused by the guard",
  "a damaged record was refused",
  "a jump of the store's clock was noticed",
  "a lost write was noticed",
  "a store's loss of data was noticed",
  "a key was granted again after its record was lost",
  "a dangerous lease was granted to enough signers",
  "a dangerous lease was refused to too few signers",
  "a line of the audit that a crash had torn was cut off",
] as const;

/** What is only reached where clients go through servers. */
export const SERVER_SITUATIONS = [
  "a waiter in a server's queue was granted after waiting",
  "a server died while clients waited",
  "a request that was sent again found its own grant",
  "two servers decided about one key",
] as const;

export type Situation = (typeof SITUATIONS)[number] | (typeof SERVER_SITUATIONS)[number];

/** A grant is a write that shows a fence for the first time. */
export function isGrant({ before, after }: AppliedWrite): boolean {
  if (after === null || after.state !== "held") return false;
  return before === null || before.generation !== after.generation || before.term !== after.term;
}
