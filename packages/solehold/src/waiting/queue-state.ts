/**
 * The states of a key's queue, and which may follow which.
 *
 *   idle         nobody waits; kept for a moment with its watch, because they often come back
 *   attempting   an attempt or a look is under way, for the first waiter
 *   queued       somebody waits for an event, or for the time of the next look
 *   backing-off  the store did not answer; the first waiter asks again in a moment
 *   closed       gone
 */
import { keyId, type LeaseKey } from "../core/index.ts";
import type { Timer } from "../env/index.ts";

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

/** Throws unless the queue may go from one state to the other with so many waiters. */
export function assertFollows(from: QueueState, to: QueueState, waiters: number, key: LeaseKey): void {
  assert(FOLLOWS[from.kind].includes(to.kind), `${from.kind} cannot become ${to.kind}`, key);
  if (to.kind === "queued" || to.kind === "backing-off")
    assert(waiters > 0, `${to.kind} without a waiter`, key);
  if (to.kind === "idle" || to.kind === "closed") assert(waiters === 0, `${to.kind} with waiters`, key);
}

/** A broken invariant is a mistake in this folder: better a loud end than a waiter that waits for ever. */
export function assert(holds: boolean, what: string, key: LeaseKey): asserts holds {
  if (!holds) throw new Error(`the wait queue of ${keyId(key)} broke an invariant: ${what}`);
}
