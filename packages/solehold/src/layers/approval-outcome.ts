/** Between the guard and the service: which commands are guarded, and what a barred one is answered. */
import { type CommandOutcome, hashToken, type LeaseRequest } from "../executor/index.ts";
import type { GuardedCommand, GuardVerdict } from "./approval-check.ts";

/** Null for commands that prove ownership by a token: they need no approval. */
export function guardedCommandOf(request: LeaseRequest, defaultTtlMs: number): GuardedCommand | null {
  const { key } = request;
  switch (request.op) {
    case "acquire": {
      const { holder, purpose, ttlMs = defaultTtlMs } = request;
      // The token is the caller's secret: who repeats it repeats this attempt.
      const attempt = request.token === undefined ? {} : { attempt: hashToken(request.token) };
      return {
        action: "acquire",
        key,
        holder,
        ttlMs,
        ...(purpose === undefined ? {} : { purpose }),
        ...attempt,
      };
    }
    case "revoke":
    case "break": {
      const generation = request.generation === undefined ? {} : { generation: request.generation };
      const ttlMs = request.op === "break" ? { ttlMs: request.periodMs } : {};
      return { action: request.op, key, ...generation, ...ttlMs };
    }
    default:
      return null;
  }
}

/** The outcome that the guard gives instead of the command's, or null when the command may go on. */
export function barredBy(verdict: GuardVerdict, nowMs: number): CommandOutcome | null {
  switch (verdict.kind) {
    case "open":
    case "approved":
      return null;
    case "unavailable":
      return { kind: "unsettled", outcome: "not-applied", cause: verdict.cause };
    case "outside": {
      const { field, message } = verdict;
      const decision = { kind: "refused", reason: "INPUT_SCHEMA_INVALID", field, message } as const;
      return { kind: "refused", decision, storeTimeMs: nowMs };
    }
    case "unapproved": {
      const decision = { kind: "denied", reason: "QUORUM_NOT_MET", heldBy: null, heldUntilMs: null } as const;
      return { kind: "refused", decision, storeTimeMs: nowMs };
    }
  }
}
