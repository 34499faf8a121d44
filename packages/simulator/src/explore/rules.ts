/** What a small world is, and which rules hold in it: the shipped ones, unless a mistake is planted. */
import { createPolicy, type DriftBound, decide, type LeasePolicy } from "solehold/internal";
import type { Operation } from "./state.ts";

export interface ExploreWorld {
  readonly clients: number;
  readonly keys: number;
  /** "slots": the keys are the slots of one name, and a client wants one of them, whichever. */
  readonly keysAre: "apart" | "slots";
  readonly ttlTicks: number;
  /** How far a client's clock may be ahead of or behind the store's. */
  readonly lag: number;
  /** By how much a client that decides may misjudge the store's time, either way. */
  readonly doubt: number;
  /** How many requests in the whole world may arrive after their sender gave up. */
  readonly late: number;
  /** The minimum hold and the delay after an expiry that every acquire asks for. */
  readonly holdAtLeast: number;
  readonly lockDelay: number;
  readonly operations: readonly Operation[];
  /** Whether writes to a guarded resource are on their way too. */
  readonly guarded: "yes" | "no";
}

export interface ExploreRules {
  readonly policy: LeasePolicy;
  /** Made of the margin that the world's clocks call for. */
  readonly drift: (bound: DriftBound) => DriftBound;
  readonly decide: typeof decide;
  readonly writes: "conditional" | "blind";
  readonly beliefFrom: "request" | "reply";
  /** When a holder that releases or hands on stops believing. */
  readonly stops: "before-saying" | "never";
  readonly nonces: "unique" | "constant";
  /**
   * Ended records are collected once no request that saw an absence can be left. The floor stands for the store's time,
   * which is above every generation that was granted before.
   */
  readonly collects: "settled-under-floor" | "at-once" | "without-floor";
  readonly guard: "on" | "off";
}

export const SHIPPED_RULES: ExploreRules = {
  // Real generations would make every state a new one: small numbers above a floor decide alike.
  policy: createPolicy({ maxTtlMs: 100, defaultTtlMs: 4, generations: "count" }),
  drift: (bound) => bound,
  decide,
  writes: "conditional",
  beliefFrom: "request",
  stops: "before-saying",
  nonces: "unique",
  collects: "settled-under-floor",
  guard: "on",
};

const BASE: ExploreWorld = {
  clients: 2,
  keys: 1,
  keysAre: "apart",
  ttlTicks: 4,
  lag: 0,
  doubt: 0,
  late: 0,
  holdAtLeast: 0,
  lockDelay: 0,
  operations: ["acquire", "renew", "release"],
  guarded: "no",
};

const WITH_REVOKE = ["acquire", "renew", "release", "revoke"] as const;

/** Each looks at some things closely, because everything at once would be too many states. */
export const EXPLORE_WORLDS = {
  clocks: { ...BASE, lag: 1, doubt: 1, operations: WITH_REVOKE },
  late: { ...BASE, doubt: 1, late: 1, operations: WITH_REVOKE },
  both: { ...BASE, ttlTicks: 3, lag: 1, late: 1 },
  guard: { ...BASE, guarded: "yes" },
  handoff: { ...BASE, late: 1, operations: ["acquire", "renew", "handoff", "break"] },
  closed: { ...BASE, ttlTicks: 2, doubt: 1, late: 1, holdAtLeast: 4, lockDelay: 1, operations: WITH_REVOKE },
  crowd: { ...BASE, clients: 3, ttlTicks: 3, lag: 1 },
  keys: { ...BASE, keys: 2, ttlTicks: 3 },
  slots: { ...BASE, clients: 3, keys: 2, keysAre: "slots", ttlTicks: 3 },
} as const satisfies Record<string, ExploreWorld>;

export type ExploreWorldName = keyof typeof EXPLORE_WORLDS;
