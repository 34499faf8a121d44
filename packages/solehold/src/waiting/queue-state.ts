/**
 * The states of a key's queue, and which may follow which.
 *
 *   idle         nobody waits; kept for a moment with its watch, because they often come back
 *   attempting   an attempt or a look is under way, for the first waiter
 *   queued       somebody waits for an event, or for the time of the next look
 *   backing-off  the store did not answer; the first waiter asks again in a moment
 *   closed       gone
 */
import type { Timer } from "../env/index.ts";
import { invariant } from "../support/invariant.ts";

export type QueueState =
  | { readonly kind: "idle" }
  | { readonly kind: "attempting"; readonly done: Promise<void>; again: boolean }
  | { readonly kind: "queued"; readonly timer: Timer; readonly isHeldBack: boolean }
  | { readonly kind: "backing-off"; readonly timer: Timer }
  | { readonly kind: "closed" };

export const IDLE: QueueState = { kind: "idle" };
const FOLLOWS: { readonly [kind in QueueState["kind"]]: readonly QueueState["kind"][] } = {
  idle: ["attempting", "queued", "closed"],
  attempting: ["attempting", "queued", "backing-off", "idle"],
  queued: ["attempting", "queued", "idle"],
  "backing-off": ["attempting", "idle"],
  closed: [],
};

/** Throws unless the queue may go from one state to the other with so many waiters: better than one that waits for ever. */
export function assertFollows(from: QueueState, to: QueueState, waiters: number): void {
  invariant(FOLLOWS[from.kind].includes(to.kind), `a queue that is ${from.kind} does not become ${to.kind}`);
  const waits = to.kind === "queued" || to.kind === "backing-off";
  if (to.kind !== "attempting")
    invariant(waits === waiters > 0, `a queue with ${waiters} waiters is not ${to.kind}`);
}
