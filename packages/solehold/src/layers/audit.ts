/**
 * The audit layer: every attempt, allowed or not, is one entry in the trail before its answer leaves. An answer that could
 * not be audited is not confirmed: its outcome is unknown, because nobody could prove it later.
 */
import type { AuditTrail } from "../audit/index.ts";
import { type Env, randomId } from "../env/index.ts";
import {
  type CallContext,
  type CommandOutcome,
  type Layer,
  type LeaseRequest,
  layerOver,
  type ReleaseRequest,
  type UnsettledOutcome,
  withFeature,
} from "../executor/index.ts";
import { StoreError } from "../store/index.ts";
import { auditEventOf, type TracedContext } from "./audit-entry.ts";

export interface AuditLayerOptions {
  readonly trail: AuditTrail;
  readonly env: Env;
  /** The store's time, for what was decided without the store. */
  readonly nowMs: () => number;
}

export function withAudit(options: AuditLayerOptions): Layer {
  return (next) =>
    layerOver(next, {
      features: withFeature(next, "audit"),
      execute: async (request, context = {}) => {
        const traced = withTrace(context, options.env);
        if (request.op === "release" && request.next !== undefined) {
          const served = { ...request.next, context: withTrace(request.next.context, options.env) };
          const release: ReleaseRequest = { ...request, next: served };
          const outcome = await next.execute(release, traced);
          return await auditedPair(release, outcome, traced, served.context, options);
        }
        const outcome = await next.execute(request, traced);
        return await audited(request, outcome, traced, options);
      },
    });
}

function withTrace(context: CallContext, env: Env): TracedContext {
  return context.traceId === undefined ? { ...context, traceId: randomId(env) } : (context as TracedContext);
}

async function audited<Outcome extends CommandOutcome>(
  request: LeaseRequest,
  outcome: Outcome,
  context: TracedContext,
  { trail, nowMs }: AuditLayerOptions,
): Promise<Outcome | UnsettledOutcome> {
  const decided = outcome.kind !== "unsettled" && outcome.storeTimeMs > 0;
  try {
    await trail.append(auditEventOf(request, outcome, context, decided ? outcome.storeTimeMs : nowMs()));
    return outcome;
  } catch (failure) {
    return { kind: "unsettled", outcome: "unknown", cause: unauditedError(failure) };
  }
}

/** A release that may have served the next waiter with its write: two attempts, two entries. */
async function auditedPair(
  request: ReleaseRequest,
  outcome: CommandOutcome,
  context: TracedContext,
  nextContext: TracedContext,
  options: AuditLayerOptions,
): Promise<CommandOutcome> {
  if (outcome.kind === "refused" || outcome.next === undefined || request.next === undefined)
    return await audited(request, outcome, context, options);
  const granted = outcome.next;
  const [released, next] = await Promise.all([
    audited(request, outcome, context, options),
    audited(request.next.request, granted, nextContext, options),
  ]);
  return { ...released, next };
}

export function unauditedError(cause: unknown): StoreError {
  const detail = cause instanceof Error ? cause.message : String(cause);
  const message = `the audit trail could not be written, so the request is not confirmed: ${detail}`;
  return new StoreError("full", message, { outcome: "unknown", cause });
}
