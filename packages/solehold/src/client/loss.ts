/** How a lease ended for its holder: what the store said to a renewal, to a release, and to a handoff. */
import { REASONS, type Reason } from "../core/index.ts";
import type { CommandOutcome } from "../executor/index.ts";
import type { LossReason } from "./errors.ts";

export interface ReleaseResult {
  /** True when the store confirmed that this call (or an earlier one) ended the lease. */
  readonly released: boolean;
  readonly reason: "released" | "already-gone" | "unreachable";
}

/** A renewal that is refused ends the lease for its holder, whatever the reason says about other requests. */
export function lossOf(reason: Reason): LossReason {
  return REASONS[reason].loss ?? "superseded";
}

export function releaseResult(outcome: CommandOutcome): ReleaseResult {
  if (outcome.kind === "applied") return { released: true, reason: "released" };
  return { released: false, reason: outcome.kind === "refused" ? "already-gone" : "unreachable" };
}

export function unreachable(): ReleaseResult {
  return { released: false, reason: "unreachable" };
}
