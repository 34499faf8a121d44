/** A wait that ended without an attempt: nothing was asked of the store for it. */
import type { UnsettledOutcome } from "../executor/index.ts";
import { StoreError } from "../store/index.ts";

export type WaitEnd =
  /** The caller has gone, or said that it does not want the lease any more. */
  | "cancelled"
  /** This process is shutting down. */
  | "draining"
  /** As many wait already as may. */
  | "too-many-waiters";

const MESSAGES: { readonly [end in WaitEnd]: string } = {
  cancelled: "the caller stopped waiting",
  draining: "this process is shutting down: ask another one, or this one again in a moment",
  "too-many-waiters": "too many requests wait already: try again in a moment",
};

export class WaitEndedError extends StoreError {
  readonly end: WaitEnd;

  constructor(end: WaitEnd) {
    super(end === "draining" ? "closed" : "unreachable", MESSAGES[end], { outcome: "not-applied" });
    this.end = end;
  }
}

export function waitEnded(end: WaitEnd): UnsettledOutcome {
  return { kind: "unsettled", outcome: "not-applied", cause: new WaitEndedError(end) };
}
