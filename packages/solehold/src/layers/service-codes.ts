/** How the lease service names the outcome of a command: the reason's own code, but for what only the command can tell. */
import { type LeaseOp, type LeaseServiceCode, REASONS, type Reason } from "../core/index.ts";
import type { CommandOutcome } from "../executor/index.ts";

/** Using a lease that is gone is stale, however it went: unknown, revoked, expired or taken over. */
const STALE_WHEN_USED: ReadonlySet<Reason> = new Set<Reason>([
  "LEASE_NOT_FOUND",
  "LEASE_REVOKED",
  "LEASE_EXPIRED",
  "LEASE_GENERATION_STALE",
  "LEASE_HELD_BY_OTHER",
]);

export function serviceCodeOf(op: LeaseOp, outcome: CommandOutcome): LeaseServiceCode {
  if (outcome.kind === "applied") return "LS_OK";
  if (outcome.kind === "unsettled") return "LS_UNAVAILABLE";
  const { reason } = outcome.decision;
  if (op === "use" && STALE_WHEN_USED.has(reason)) return "LS_STALE_USE";
  // A key in another's hands after one's own grant means that one's own had run out first.
  if (op === "renew" && reason === "LEASE_HELD_BY_OTHER") return "LS_EXPIRED";
  return REASONS[reason].serviceCode;
}
