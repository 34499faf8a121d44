/**
 * What was granted to a caller that has gone is given back, so that nobody waits for a ghost.
 *
 * A caller that chose the token may be repeating its request at this moment, here or on another server, and
 * then believes in the grant that it finds. Its repeat writes the record anew, so the grant is only given back
 * while the record is as this request wrote it: either the repeat finds nothing and is granted anew, or it came
 * first and keeps what it found. With an idempotency key a repeat writes nothing: such a grant stays until
 * its ttl ends it, unless the caller said that it does not want it any more.
 */
import type { LeaseService, ServiceReply } from "solehold/service";
import type { Waiter } from "./line.ts";

export type GrantedTo = Pick<Waiter, "request" | "context" | "options">;

/** The reply to the release; null when there is nothing to give back, or when it must not be. */
export async function giveBack(
  service: LeaseService,
  { request, context, options }: GrantedTo,
  reply: ServiceReply | null,
): Promise<ServiceReply | null> {
  const outcome = reply?.outcome;
  const { key, holder, token } = request;
  const owner = { key, holder, token };
  const { repeatable, connection } = options;
  if (repeatable === "no" || connection.isCancelled()) {
    const perhaps = outcome?.kind === "unsettled" && outcome.outcome === "unknown";
    return outcome?.kind === "applied" || perhaps ? await service.release(owner, context) : null;
  }
  if (repeatable === "by key" || outcome?.kind !== "applied" || outcome.decision.replayed) return null;
  return await service.giveBack(owner, outcome.decision.lease, context);
}
