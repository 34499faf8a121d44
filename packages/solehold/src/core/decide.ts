/**
 * The brain. Every path through Solehold (library, server, command line, simulator) asks this one
 * function; nothing else decides who holds a lease.
 *
 * Pure and total: no clock, no randomness, no I/O, no exception for bad input; the same input gives the
 * same bytes. It promises nothing about what happened to the store since the snapshot was read: the
 * caller writes the effect on condition that the snapshot still stands.
 */
import type { AcquireCommand, LeaseCommand } from "./command.ts";
import { computeDecision, type LeaseDecision, type LeaseEffect } from "./compute.ts";
import { evaluatePolicy, type PolicyBundle } from "./evaluate.ts";
import type { StoreInstant } from "./instant.ts";
import type { LeasePolicy } from "./policy.ts";
import { NOTHING_TRUE } from "./rules.ts";
import type { LeaseSnapshot } from "./snapshot.ts";

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
    const decided = decideOne(command, snapshot, now, policy);
    const next = command.op === "release" ? command.next : undefined;
    return next === undefined ? decided : withNextGrant(decided, next, snapshot, now, policy);
  } catch {
    return UNREADABLE;
  }
}

function decideOne(
  command: LeaseCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
): Decided {
  const bundle = evaluatePolicy(command, snapshot, now, policy);
  const { decision, effect } = computeDecision(command, snapshot, now, policy, bundle);
  return { bundle, decision, effect };
}

/**
 * A release and the grant to the next waiter, in one write: the acquire is decided on what the release would leave behind,
 * and only the result of both is written. Either both happen or neither does. Where the acquire is not granted on what the
 * release leaves (a handoff to another, a store that lost writes, a policy that deletes what is released), the release is
 * written alone.
 */
function withNextGrant(
  released: Decided,
  next: AcquireCommand,
  snapshot: LeaseSnapshot,
  now: StoreInstant,
  policy: LeasePolicy,
): Decided {
  const { decision, effect } = released;
  if (decision.kind !== "granted" || decision.replayed || effect.kind !== "write") return released;
  const acquire: AcquireCommand = { ...next, nonce: effect.record.nonce };
  const granted = decideOne(acquire, { ...snapshot, record: effect.record }, now, policy);
  if (granted.decision.kind !== "granted" || granted.effect.kind !== "write") return released;
  return { ...released, decision: { ...decision, next: granted.decision }, effect: granted.effect };
}

const PROBLEM = {
  field: "input",
  message: "could not be read: command, snapshot, instant and policy must be plain data",
};

/** For objects whose fields throw or change while they are read. Nothing is granted on such a base. */
const UNREADABLE: Decided = Object.freeze({
  bundle: Object.freeze({
    ...NOTHING_TRUE,
    reason: "INTERNAL_PIPELINE_ERROR",
    path: null,
    problem: Object.freeze(PROBLEM),
  }),
  decision: Object.freeze({ kind: "refused", reason: "INTERNAL_PIPELINE_ERROR", ...PROBLEM }),
  effect: Object.freeze({ kind: "none" }),
});
