/**
 * The sequential meaning of a key, for the linearizability checker: which answers are right in which state,
 * and what they change. Time is left out on purpose (a takeover is always allowed here, an expiry can always
 * have happened); what may happen when is the business of the other oracles.
 */
import type { CallRecord } from "./oracle.ts";

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

/** What a call says about its key: nothing, one thing, or, if an effect got lost on the way, two. */
export function operationsOf(call: CallRecord): readonly ModelOperation[] {
  const { outcome, startedMs, endedMs } = call;
  // The store's truth prunes what cannot have happened: a call of unknown fate none of whose writes was applied.
  if ((outcome === null || outcome.kind === "unsettled") && !call.lostEffect) return [];
  const text = `${call.process} ${call.request.op}: ${describe(call)}`;
  const unknown = outcome === null || outcome.kind === "unsettled";
  const operations: ModelOperation[] = [];
  const transition = transitionOf(call);
  if (transition !== null) {
    const limitMs = unknown || endedMs === null ? Number.POSITIVE_INFINITY : endedMs;
    const certainty = unknown ? "unknown" : "known";
    operations.push({ startedMs, endedMs: limitMs, certainty, transition, text });
  }
  const lost = call.lostEffect && !unknown ? possible(call) : null;
  if (lost !== null) {
    const limitMs = Number.POSITIVE_INFINITY;
    operations.push({
      startedMs,
      endedMs: limitMs,
      certainty: "unknown",
      transition: lost,
      text: `${text} (lost)`,
    });
  }
  return operations;
}

function transitionOf(call: CallRecord): Transition | null {
  const { outcome, request } = call;
  if (request.op === "get") return outcome?.kind === "view" ? viewed(call) : null;
  if (outcome?.kind === "view") return null;
  if (outcome === null || outcome.kind === "unsettled") {
    return outcome?.outcome === "not-applied" ? null : possible(call);
  }
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

function applied({ outcome, request, generation }: CallRecord): Transition | null {
  if (outcome?.kind !== "applied") return null;
  const { lease } = outcome.decision;
  switch (request.op) {
    case "acquire":
      return (state) => {
        if (state.kind === "held" && state.generation === lease.generation)
          return state.holder === lease.holder ? state : null;
        const next =
          state.kind === "absent"
            ? lease.generation > state.generation
            : lease.generation === state.generation + 1n;
        return next ? { kind: "held", generation: lease.generation, holder: lease.holder } : null;
      };
    case "renew":
    case "use":
    case "resume":
      return (state) => (state.kind === "held" && state.generation === generation ? state : null);
    case "release":
    case "handoff":
      return (state) =>
        state.kind !== "absent" && state.generation === generation ? { ...state, kind: "released" } : null;
    case "revoke":
      return (state) =>
        state.kind !== "absent" && state.generation === lease.generation
          ? { ...state, kind: "revoked" }
          : null;
    case "break":
      return (state) => (state.kind === "held" && state.generation === lease.generation ? state : null);
    default:
      return null;
  }
}

function refused({ outcome, request, generation }: CallRecord): Transition | null {
  if (outcome?.kind !== "refused") return null;
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
      return when((state) => state.kind === "released");
    case "LEASE_NOT_FOUND":
      return when((state) => state.kind === "absent" || state.kind === "released");
    case "LEASE_TOKEN_INVALID":
      return when((state) => state.generation !== generation);
    default:
      return null;
  }
}

/** What an operation of unknown fate may have done; null when that would not show. */
function possible({ request, generation }: CallRecord): Transition | null {
  switch (request.op) {
    case "acquire":
      return ({ generation: last }) => ({ kind: "held", generation: last + 1n, holder: request.holder });
    case "release":
    case "handoff":
      return (state) =>
        state.kind !== "absent" && state.generation === generation ? { ...state, kind: "released" } : null;
    case "revoke":
      return (state) =>
        state.kind === "held" || state.kind === "released" ? { ...state, kind: "revoked" } : null;
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
