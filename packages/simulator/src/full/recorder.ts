/**
 * A layer that writes down every call: when it began, when it ended and how, for the oracles that judge what callers were
 * answered. It changes nothing.
 */
import {
  type AppliedOutcome,
  type CommandOutcome,
  type Env,
  keyId,
  type Layer,
  type LeaseRequest,
  layerOver,
  recordFence,
  StoreError,
} from "solehold/internal";
import type { CallRecord } from "../oracles/oracle.ts";
import type { World } from "../world/world.ts";

/** When the grant's holder must stop at the latest, on its own clocks. */
export interface BeliefLimit {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** What a run knows of all its processes' calls. */
export interface CallLog {
  readonly calls: CallRecord[];
  readonly generationOfToken: Map<string, bigint>;
  readonly tokenOfGrant: Map<string, string>;
  /** By process, key and fence. */
  readonly limits: Map<string, BeliefLimit>;
  readonly onEnd: (call: CallRecord) => void;
}

type Answer = NonNullable<CallRecord["outcome"]>;

/** Records the calls of this process. */
export function recorded(process: string, env: Env, world: World, log: CallLog): Layer {
  const begin = (request: CallRecord["request"], patience: CallRecord["patience"]): CallRecord => {
    const token = "token" in request ? request.token : undefined;
    const generation = token === undefined ? null : (log.generationOfToken.get(token) ?? null);
    const times = { startedMs: world.nowMs, endedMs: null, outcome: null };
    const call: CallRecord = { id: log.calls.length, process, request, patience, generation, ...times };
    log.calls.push(call);
    if (request.op !== "renew") world.note(process, request.op, () => keyId(request.key));
    return call;
  };
  const end = (call: CallRecord, outcome: Answer): void => {
    call.endedMs = world.nowMs;
    call.outcome = outcome;
    world.note(process, `${call.request.op} ${outcome.kind}`, () => describe(outcome));
    log.onEnd(call);
  };
  const remember = (request: LeaseRequest, outcome: AppliedOutcome): void => {
    if (request.op !== "acquire" && request.op !== "renew") return;
    const { lease } = outcome.decision;
    const grant = `${keyId(lease.key)}@${recordFence(lease)}`;
    log.generationOfToken.set(outcome.token, lease.generation);
    log.tokenOfGrant.set(grant, outcome.token);
    const id = `${process} ${grant}`;
    const { monotonicMs, wallMs } = outcome.believedFrom;
    const known = log.limits.get(id);
    log.limits.set(id, {
      monotonicMs: Math.max(known?.monotonicMs ?? 0, monotonicMs + outcome.validForMs),
      wallMs: Math.max(known?.wallMs ?? 0, wallMs + outcome.validForMs),
    });
    if (env.monotonicMs() < monotonicMs) throw new Error("a belief cannot begin in the future");
  };
  return (inner) =>
    layerOver(inner, {
      execute: async (request, context = {}) => {
        const call = begin(request, context.wait === undefined ? "at once" : "queued");
        const next = request.op === "release" ? request.next?.request : undefined;
        const nextCall = next === undefined ? null : begin(next, "at once");
        const outcome = await inner.execute(request, context);
        if (outcome.kind === "applied") remember(request, outcome);
        end(call, outcome);
        if (next === undefined || nextCall === null) return outcome;
        const served = outcome.kind === "refused" ? undefined : outcome.next;
        if (served?.kind === "applied") remember(next, served);
        end(nextCall, served ?? (outcome.kind === "refused" ? PERHAPS_SERVED : NOT_SERVED));
        return outcome;
      },
      read: async (key) => {
        const call = begin({ op: "get", key }, "at once");
        const view = await inner.read(key);
        end(call, { kind: "view", view });
        return view;
      },
    });
}

/** The release went alone: nothing was asked for the waiter that it would have served. */
const NOT_SERVED = unserved("not-applied", "the release was written alone");

/** An attempt whose reply was lost may have served the waiter before somebody else wrote. */
const PERHAPS_SERVED = unserved("unknown", "the release was refused at last");

function unserved(outcome: "not-applied" | "unknown", message: string): CommandOutcome {
  return { kind: "unsettled", outcome, cause: new StoreError("internal", message, { outcome }) };
}

function describe(outcome: Answer): string {
  switch (outcome.kind) {
    case "view":
      return outcome.view === null ? "nothing" : `${outcome.view.state} ${outcome.view.fence}`;
    case "applied":
      return `fence ${recordFence(outcome.decision.lease)} valid for ${outcome.validForMs} ms`;
    case "refused":
      return outcome.decision.reason;
    case "unsettled":
      return `${outcome.outcome}: ${outcome.cause.message}`;
  }
}
