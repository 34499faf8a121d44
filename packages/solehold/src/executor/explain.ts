/**
 * What would be decided about a request now, and why: the policy bundle and the decision, from one read of the store.
 * Nothing is written. It promises nothing about the next moment, and knows neither quotas nor approvals.
 */
import type { LeaseDecision, PolicyBundle } from "../core/index.ts";
import { readClocks } from "../env/index.ts";
import type { CallContext } from "./executor.ts";
import type { ExecutorParts } from "./parts.ts";
import { commandOf, type LeaseRequest, requestProblem } from "./request.ts";

export interface Explanation {
  /** Null where the request cannot be evaluated at all: the decision says what is wrong with it. */
  readonly bundle: PolicyBundle | null;
  readonly decision: LeaseDecision;
  /** By the store's clock; 0 where it was not asked. */
  readonly storeTimeMs: number;
}

/** Rejects with a StoreError where the store cannot be read. */
export async function explainRequest(
  request: LeaseRequest,
  context: CallContext,
  { env, ids, policy, cache, decide }: ExecutorParts,
): Promise<Explanation> {
  const given = "token" in request ? request.token : undefined;
  const problem = requestProblem(request, given, context);
  if (problem !== null)
    return {
      bundle: null,
      decision: { kind: "refused", reason: "INPUT_SCHEMA_INVALID", ...problem },
      storeTimeMs: 0,
    };
  const command = commandOf(request, { token: given ?? ids.next(), nonce: ids.next(), policy, context });
  const source = await cache.read(request.key);
  const reading = readClocks(env);
  const now = cache.instant(source, reading);
  const snapshot = cache.snapshot(command, source, now, reading.monotonicMs);
  const { bundle, decision } = decide(command, snapshot, now, policy);
  return { bundle, decision, storeTimeMs: now.stampMs };
}
