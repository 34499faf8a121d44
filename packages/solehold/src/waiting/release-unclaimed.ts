/**
 * What was granted to a caller that has gone is released, so that nobody waits for a holder that does not exist.
 *
 * A caller that chose the token, or an idempotency key, may be repeating its request at this moment, here or on another
 * server, and then finds the grant. Before it believes, its repeat writes the record anew (a repeat by key renews what it
 * found), so the grant is only released while the record is as this request wrote it: either the repeat finds nothing and
 * is granted anew, or it came first and keeps what it found. A request that was held up and found the grant of its own
 * repeat has nothing to release. A caller that merely lost its connection keeps what its key stands for until the ttl ends
 * it.
 *
 * Whether an attempt of unknown fate wrote anything cannot be known: it is only released when nobody else can find it,
 * because the token was chosen here, or because its owner said that it does not want it any more (and has no key under
 * which it could ask again).
 */
import type { CommandOutcome, ReleaseRequest } from "../executor/index.ts";
import { mayBeGranted } from "./outcomes.ts";
import type { GrantRecipient } from "./waiter.ts";

/** The release that is due; null when there is nothing to release, or when it must not be. */
export function releaseOfUnclaimed(
  { request, recipient, repeatable }: GrantRecipient,
  outcome: CommandOutcome,
): ReleaseRequest | null {
  const { key, holder, token } = request;
  const release = { op: "release", key, holder, token } as const;
  const isAlone = repeatable === "no" || (repeatable === "by token" && recipient.isCancelled());
  if (mayBeGranted(outcome)) return isAlone ? release : null;
  if (outcome.kind !== "applied") return null;
  if (repeatable === "no") return release;
  const { lease, replayed } = outcome.decision;
  const foundThere = replayed || lease.renewals > 0;
  if (foundThere || (repeatable === "by key" && !recipient.isCancelled())) return null;
  return { ...release, onlyNonce: lease.nonce };
}
