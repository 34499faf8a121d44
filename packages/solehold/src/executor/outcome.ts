/**
 * How a command ended. Every mutation ends in one of three ways, and the type makes a caller look:
 * applied (it is so), refused (it is not so, with the decision that says why), or unknown.
 */
import type { QuorumVerification } from "../approvals/index.ts";
import type {
  ClockReading,
  DeniedDecision,
  FieldProblem,
  GrantedDecision,
  RefusedDecision,
} from "../core/index.ts";
import type { StoreError } from "../store/index.ts";

export interface AppliedOutcome {
  readonly kind: "applied";
  readonly decision: GrantedDecision;
  /** The grant's token; empty for an operator's command, and once the lease was released or handed on. */
  readonly token: string;
  /** Own clocks, read before the request that was applied left: a belief counts from here. */
  readonly believedFrom: ClockReading;
  /** How long from then the record lasts on the store's clock: less than the ttl after a replay or a break. */
  readonly validForMs: number;
  /** The store's time at the decision, for people. */
  readonly storeTimeMs: number;
  /** The grant that the same write gave to the next waiter, for a release that named one and served it. */
  readonly next?: AppliedOutcome | UnsettledOutcome;
  /** How the approvals were judged, where a rule asked for some. */
  readonly quorum?: QuorumVerification;
}

export interface RefusedOutcome {
  readonly kind: "refused";
  readonly decision: DeniedDecision | RefusedDecision;
  readonly storeTimeMs: number;
  readonly quorum?: QuorumVerification;
}

/** The store could not be asked, or did not answer. */
export interface UnsettledOutcome {
  readonly kind: "unsettled";
  /** "unknown" when a write may have happened or may still happen; "not-applied" when it certainly did not. */
  readonly outcome: "unknown" | "not-applied";
  readonly cause: StoreError;
  /** A release that named a next waiter may have served it with the same write: that grant is unknown, too. */
  readonly next?: AppliedOutcome | UnsettledOutcome;
  readonly quorum?: QuorumVerification;
}

export type CommandOutcome = AppliedOutcome | RefusedOutcome | UnsettledOutcome;

/** The request itself is wrong: nothing was asked of the store. */
export function invalidRequest(problem: FieldProblem): RefusedOutcome {
  const decision: RefusedDecision = { kind: "refused", reason: "INPUT_SCHEMA_INVALID", ...problem };
  return { kind: "refused", decision, storeTimeMs: 0 };
}
