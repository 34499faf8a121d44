/**
 * The brain. Every path through Solehold (library, server, command line, simulator) asks this one
 * function; nothing else decides who holds a lease.
 *
 * Pure and total: no clock, no randomness, no I/O, no exception for bad input; the same input gives the
 * same bytes. It promises nothing about what happened to the store since the snapshot was read: the
 * caller writes the effect on condition that the snapshot still stands.
 */
import type { LeaseCommand } from "./command.ts";
import { computeDecision, type LeaseDecision, type LeaseEffect } from "./compute.ts";
import { evaluatePolicy, type LeaseSnapshot, type PolicyBundle } from "./evaluate.ts";
import type { StoreInstant } from "./instant.ts";
import type { LeasePolicy } from "./policy.ts";

export interface Decided {
  readonly bundle: PolicyBundle;
  readonly decision: LeaseDecision;
  readonly effect: LeaseEffect;
}

export function decide(
  command: LeaseCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
): Decided {
  try {
    const bundle = evaluatePolicy(command, snapshot, now, policy);
    const { decision, effect } = computeDecision(command, snapshot, now, policy, bundle);
    return { bundle, decision, effect };
  } catch {
    return UNREADABLE;
  }
}

const PROBLEM = {
  field: "input",
  message: "could not be read: command, snapshot, instant and policy must be plain data",
};

/** For objects whose fields throw or change while they are read. Nothing is granted on such a base. */
const UNREADABLE: Decided = Object.freeze({
  bundle: Object.freeze({
    leaseExists: false,
    leaseExpired: false,
    ownerMatch: false,
    tokenMatch: false,
    ttlInBounds: false,
    grantEligible: false,
    reason: "INTERNAL_PIPELINE_ERROR",
    path: null,
    problem: Object.freeze(PROBLEM),
  }),
  decision: Object.freeze({ kind: "refused", reason: "INTERNAL_PIPELINE_ERROR", ...PROBLEM }),
  effect: Object.freeze({ kind: "none" }),
});
