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
import { slotKeys } from "../core/index.ts";
import type { CommandOutcome, ReleaseRequest } from "../executor/index.ts";
import { mayBeGranted } from "./outcomes.ts";
import type { GrantRecipient } from "./waiter.ts";

/** The releases that are due; none when there is nothing to release, or when it must not be. */
export function releaseOfUnclaimed(
  { request, recipient, repeatable }: GrantRecipient,
  outcome: CommandOutcome,
): readonly ReleaseRequest[] {
  const { key, slots = 1, holder, token } = request;
  const isAlone = repeatable === "no" || (repeatable === "by token" && recipient.isCancelled());
  // Nobody knows which slot it may have been.
  if (mayBeGranted(outcome))
    return isAlone ? slotKeys(key, slots).map((slot) => ({ op: "release", key: slot, holder, token })) : [];
  if (outcome.kind !== "applied") return [];
  const { lease, replayed } = outcome.decision;
  const release = { op: "release", key: lease.key, holder, token } as const;
  if (repeatable === "no") return [release];
  const foundThere = replayed || lease.renewals > 0;
  if (foundThere || (repeatable === "by key" && !recipient.isCancelled())) return [];
  return [{ ...release, onlyNonce: lease.nonce }];
}
