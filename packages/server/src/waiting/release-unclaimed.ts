/**
 * What was granted to a caller that has gone is given back, so that nobody waits for a ghost.
 *
 * A caller that chose the token, or an idempotency key, may be repeating its request at this moment, here or
 * on another server, and then finds the grant. Before it believes, its repeat writes the record anew (who
 * repeats a key renews what it found), so the grant is only given back while the record is as this request
 * wrote it: either the repeat finds nothing and is granted anew, or it came first and keeps what it found.
 * A request that was held up and found the grant of its own repeat has nothing to give back.
 * A caller that merely lost its connection keeps what its key stands for until the ttl ends it.
 *
 * Whether an attempt of unknown fate wrote anything cannot be told: it is only released when nobody else can
 * find it, because the token was chosen here, or because its owner said that it does not want it any more
 * (and has no key under which it could ask again).
 */
import type { CommandOutcome, LeaseExecutor } from "solehold/internal";
import type { Waiter } from "./line.ts";

export type GrantedTo = Pick<Waiter, "request" | "context" | "options">;

/** How the release ended; null when there is nothing to release, or when it must not be. */
export async function releaseUnclaimed(
  executor: LeaseExecutor,
  { request, context, options }: GrantedTo,
  outcome: CommandOutcome | null,
): Promise<CommandOutcome | null> {
  const { key, holder, token } = request;
  const release = { op: "release", key, holder, token } as const;
  const { repeatable, connection } = options;
  const perhaps = outcome?.kind === "unsettled" && outcome.outcome === "unknown";
  const isAlone = repeatable === "no" || (repeatable === "by token" && connection.isCancelled());
  if (perhaps && isAlone) return await executor.execute(release, context);
  if (outcome?.kind !== "applied") return null;
  if (repeatable === "no") return await executor.execute(release, context);
  const { lease, replayed } = outcome.decision;
  const foundThere = replayed || lease.renewals > 0;
  if (foundThere || (repeatable === "by key" && !connection.isCancelled())) return null;
  return await executor.execute({ ...release, onlyNonce: lease.nonce }, context);
}
