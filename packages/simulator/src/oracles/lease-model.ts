/**
 * The sequential meaning of a key, for the linearizability checker: which answers are right in which state,
 * and what they change. Time is left out on purpose (a takeover is always allowed here, an expiry can always
 * have happened); what may happen when is the business of the other oracles.
 */
import type { CallRecord, LostEffect } from "./oracle.ts";

export interface KeyState {
  readonly kind: "absent" | "held" | "released" | "revoked";
  /** The highest generation so far, also while the record is gone. */
  readonly generation: bigint;
  readonly holder: string;
}

export const START: KeyState = { kind: "absent", generation: 0n, holder: "" };

/** What one operation does to a state: the state after it, or null when its answer is wrong there. */
export type Transition = (state: KeyState) => KeyState | null;

export interface ModelOperation {
  readonly startedMs: number;
  /** Infinity when nobody knows whether it ever took effect. */
  readonly endedMs: number;
  /** "unknown": it may also never have happened. */
  readonly certainty: "known" | "unknown";
  readonly transition: Transition;
  readonly text: string;
}

export function stateText(state: KeyState): string {
  return `${state.kind}:${state.generation}:${state.holder}`;
}

/** What a call says about its key; null when that is nothing. */
export function operationOf(call: CallRecord): ModelOperation | null {
  const { startedMs, endedMs } = call;
  const transition = transitionOf(call);
  if (transition === null || endedMs === null) return null;
  const text = `${call.process} ${call.request.op}: ${describe(call)}`;
  return { startedMs, endedMs, certainty: "known", transition, text };
}

/** An effect without an answer: the store's log knows the instant at which it happened. */
export function operationOfEffect(effect: LostEffect): ModelOperation {
  const { op, generation, atMs, holder } = effect;
  const took: Transition =
    op === "acquire"
      ? grantedAs(generation, holder)
      : endedAs(generation, op === "release" ? "released" : "revoked");
  const text = `${effect.process} ${op}: generation ${generation}, untold`;
  return { startedMs: atMs, endedMs: atMs, certainty: "known", transition: took, text };
}

/** A grant, or one more answer about the same grant. */
function grantedAs(generation: bigint, holder: string): Transition {
  return (state) => {
    if (state.kind === "held" && state.generation === generation)
      return state.holder === holder ? state : null;
    return generation > state.generation ? { kind: "held", generation, holder } : null;
  };
}

function endedAs(generation: bigint | null, kind: "released" | "revoked"): Transition {
  return ({ kind: before, generation: newest, holder }) =>
    before !== "absent" && newest === generation ? { kind, generation: newest, holder } : null;
}

function transitionOf(call: CallRecord): Transition | null {
  const { outcome, request } = call;
  if (request.op === "get") return outcome?.kind === "view" ? viewed(call) : null;
  // A call of unknown fate shows in the store's log, or had no effect.
  if (outcome === null || outcome.kind === "view" || outcome.kind === "unsettled") return null;
  return outcome.kind === "applied" ? applied(call) : refused(call);
}

function viewed({ outcome }: CallRecord): Transition | null {
  if (outcome?.kind !== "view") return null;
  const { view } = outcome;
  if (view === null) return (state) => (state.kind === "absent" ? state : null);
  return (state) =>
    state.kind === view.state && state.generation === view.generation && state.holder === view.holder
      ? state
      : null;
}

/** By the secret, which its caller may have been granted more than once without hearing of it. */
function applied({ outcome, request }: CallRecord): Transition | null {
  if (outcome?.kind !== "applied") return null;
  const { lease } = outcome.decision;
  switch (request.op) {
    case "acquire":
      return grantedAs(lease.generation, lease.holder);
    case "renew":
    case "use":
    case "resume":
    case "break":
      return (state) => (state.kind === "held" && state.generation === lease.generation ? state : null);
    case "release":
    case "handoff":
      return endedAs(lease.generation, "released");
    case "revoke":
      return endedAs(lease.generation, "revoked");
    default:
      return null;
  }
}

/** A waiter that never came first in a server's queue was denied by what the queue knew, not by the record. */
function refused({ outcome, request, generation, patience }: CallRecord): Transition | null {
  if (outcome?.kind !== "refused" || patience === "queued") return null;
  const { decision } = outcome;
  const heldBy = decision.kind === "denied" ? decision.heldBy : null;
  const when =
    (right: (state: KeyState) => boolean): Transition =>
    (state) =>
      right(state) ? state : null;
  switch (decision.reason) {
    case "LEASE_HELD_BY_SELF":
      return when((state) => state.kind === "held" && state.holder === heldBy);
    case "LEASE_HELD_BY_OTHER":
      if (request.op === "acquire") return when((state) => state.kind === "held" && state.holder === heldBy);
      return when((state) => state.kind === "held" || state.kind === "revoked");
    case "LEASE_REVOKED":
    case "LEASE_ALREADY_REVOKED":
      return when((state) => state.kind === "revoked");
    case "LEASE_HANDOFF_PENDING":
    case "LEASE_RESERVED":
      return when((state) => state.kind === "released");
    case "LEASE_LOCK_DELAY":
      return when((state) => state.kind === "released" || state.kind === "held");
    case "LEASE_NOT_FOUND":
      return when((state) => state.kind === "absent" || state.kind === "released");
    case "LEASE_TOKEN_INVALID":
      return when((state) => state.generation !== generation);
    default:
      return null;
  }
}

function describe({ outcome }: CallRecord): string {
  if (outcome === null) return "no answer";
  switch (outcome.kind) {
    case "view":
      return outcome.view === null
        ? "nothing"
        : `${outcome.view.state} generation ${outcome.view.generation}`;
    case "applied":
      return `${outcome.decision.lease.state} generation ${outcome.decision.lease.generation}`;
    case "refused":
      return outcome.decision.reason;
    case "unsettled":
      return outcome.outcome;
  }
}
