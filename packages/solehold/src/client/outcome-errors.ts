/** From a command's outcome to the error that its caller meets. */
import type { LeaseKey } from "../core/index.ts";
import type { AppliedOutcome, CommandOutcome, RefusedOutcome } from "../executor/index.ts";
import { heldForMs, isWorthWaiting } from "../waiting/index.ts";
import {
  type HeldDetails,
  LeaseDeniedError,
  LeaseHeldError,
  LeaseRefusedError,
  LeaseTimeoutError,
  LeaseUnavailableError,
} from "./errors.ts";

export type FailedOutcome = Exclude<CommandOutcome, AppliedOutcome>;

export function failureOf(key: LeaseKey, outcome: FailedOutcome): Error {
  if (outcome.kind === "unsettled") return new LeaseUnavailableError(key, outcome.outcome, outcome.cause);
  const { decision } = outcome;
  if (decision.kind === "refused") {
    return new LeaseRefusedError(key, decision.reason, decision.field, decision.message);
  }
  if (isWorthWaiting(outcome)) return new LeaseHeldError(heldDetails(key, outcome));
  return new LeaseDeniedError(key, decision.reason);
}

/** The wait is over, and this was its last attempt. */
export function timeoutOf(key: LeaseKey, last: FailedOutcome, waitedMs: number): Error {
  if (last.kind !== "refused" || last.decision.kind !== "denied") return failureOf(key, last);
  return new LeaseTimeoutError(heldDetails(key, last), waitedMs);
}

function heldDetails(key: LeaseKey, outcome: RefusedOutcome): HeldDetails {
  const { decision } = outcome;
  const holder = decision.kind === "denied" ? decision.heldBy : null;
  return { key, reason: decision.reason, holder, retryAfterMs: heldForMs(outcome) };
}
