/** How a lease ended for its holder: what the store said to a renewal, to a release, and to a handoff. */
import type { Reason } from "../core/index.ts";
import type { CommandOutcome } from "../executor/index.ts";
import type { LossReason } from "./errors.ts";

export interface ReleaseResult {
  /** True when the store confirmed that this call (or an earlier one) ended the lease. */
  readonly released: boolean;
  readonly reason: "released" | "already-gone" | "unreachable";
}

const LOSS_BY_REASON: { readonly [reason in Reason]?: LossReason } = {
  LEASE_EXPIRED: "expired",
  LEASE_REVOKED: "revoked",
  LEASE_NOT_FOUND: "released",
};

export function lossOf(reason: Reason): LossReason {
  return LOSS_BY_REASON[reason] ?? "superseded";
}

export function releaseResult(outcome: CommandOutcome): ReleaseResult {
  if (outcome.kind === "applied") return { released: true, reason: "released" };
  return { released: false, reason: outcome.kind === "refused" ? "already-gone" : "unreachable" };
}

export function unreachable(): ReleaseResult {
  return { released: false, reason: "unreachable" };
}
