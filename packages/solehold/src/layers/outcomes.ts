/** Outcomes that the service itself gives: the manager was not asked, or what it did cannot be confirmed. */
import type { CommandOutcome } from "../executor/index.ts";
import { StoreError } from "../store/index.ts";

/** The tenant has as many live leases as it may have. */
export function full(nowMs: number): CommandOutcome {
  const decision = { kind: "denied", reason: "CAPACITY_EXCEEDED", heldBy: null, heldUntilMs: null } as const;
  return { kind: "refused", decision, storeTimeMs: nowMs };
}

/** What was done is not confirmed, because nobody could prove it later. */
export function unaudited(cause: unknown): CommandOutcome {
  return { kind: "unsettled", outcome: "unknown", cause: unauditedError(cause) };
}

export function unauditedError(cause: unknown): StoreError {
  const detail = cause instanceof Error ? cause.message : String(cause);
  const message = `the audit trail could not be written, so the request is not confirmed: ${detail}`;
  return new StoreError("full", message, { outcome: "unknown", cause });
}
