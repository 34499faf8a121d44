/**
 * The quota layer: how many live leases a tenant may have. It counts; whether an acquire is denied for it is core's
 * decision, because an acquire that only extends a lease adds none.
 */
import type { LeaseKey } from "../core/index.ts";
import { type CallContext, type CommandOutcome, type Layer, layerOver } from "../executor/index.ts";
import type { LiveLeases } from "./live-leases.ts";

export function withQuota(live: LiveLeases): Layer {
  return (next) =>
    layerOver(next, {
      execute: async (request, context = {}) => {
        const { key } = request;
        if (request.op === "acquire") {
          await live.loaded(key.tenant);
          const limited = withinQuota(live, key, context, request.slots);
          return await counted(live, key.tenant, () => next.execute(request, limited));
        }
        if (request.op !== "release" || request.next === undefined)
          return learned(live, await next.execute(request, context));
        const { next: waiter, ...alone } = request;
        // A release does not wait until the tenant's leases are counted.
        if (!live.isLoaded(key.tenant)) return learned(live, await next.execute(alone, context));
        const served = { ...waiter, context: withinQuota(live, waiter.request.key, waiter.context) };
        return await counted(live, key.tenant, () => next.execute({ ...request, next: served }, context));
      },
    });
}

/** One of several slots is counted as a new lease; whether it only extends one is core's decision. */
function withinQuota(live: LiveLeases, key: LeaseKey, context: CallContext, slots = 1): CallContext {
  return (slots > 1 ? live.isFull(key, "another") : live.isFull(key))
    ? { ...context, quotaExhausted: true }
    : context;
}

/** A grant counts from here until it is decided; then it is counted as what it is. */
async function counted(
  live: LiveLeases,
  tenant: string,
  send: () => Promise<CommandOutcome>,
): Promise<CommandOutcome> {
  live.grantBegins(tenant);
  const outcome = await send();
  live.grantEnds(tenant);
  return learned(live, outcome);
}

function learned(live: LiveLeases, outcome: CommandOutcome): CommandOutcome {
  if (outcome.kind !== "applied") return outcome;
  // Where the same write served the next waiter, the released lease never stood in the store.
  if (outcome.next === undefined) live.learn(outcome.decision.lease);
  else if (outcome.next.kind === "applied") live.learn(outcome.next.decision.lease);
  return outcome;
}
