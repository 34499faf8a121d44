/** What an outcome says to a waiter. */
import { REASONS } from "../core/index.ts";
import type { CommandOutcome } from "../executor/index.ts";
import { StoreError } from "../store/index.ts";

/** A store that cannot be reached is worth another try; so is a denial that time can change. A wrong request is not. */
export function isWorthWaiting(outcome: CommandOutcome): boolean {
  // What was closed in this process never answers again.
  if (outcome.kind === "unsettled") return outcome.cause.kind !== "closed";
  if (outcome.kind !== "refused") return false;
  const { decision } = outcome;
  if (decision.kind !== "denied") return false;
  const { waitable } = REASONS[decision.reason];
  return waitable === "dated" ? decision.heldUntilMs !== null : waitable === "yes";
}

/** How long the key stays taken, as far as the denial says. */
export function heldForMs(outcome: CommandOutcome): number | null {
  if (outcome.kind !== "refused" || outcome.decision.kind !== "denied") return null;
  const { heldUntilMs } = outcome.decision;
  return heldUntilMs === null ? null : Math.max(0, heldUntilMs - outcome.storeTimeMs);
}

/** Whether an acquire that was not confirmed may have been carried out. */
export function mayBeGranted(outcome: CommandOutcome): boolean {
  return outcome.kind === "unsettled" && outcome.outcome === "unknown";
}

/** A call that threw: what it did is not known. */
export function asUnsettled(cause: unknown): CommandOutcome {
  const error = new StoreError("internal", `the request failed: ${String(cause)}`, {
    outcome: "unknown",
    cause,
  });
  return { kind: "unsettled", outcome: "unknown", cause: error };
}
