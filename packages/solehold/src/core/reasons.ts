/**
 * Why a decision came out as it did. Every decision carries exactly one of these; the number is stable
 * and travels in replies and in the audit trail, the name is for people and for `switch`.
 *
 * 0x4C53 is "LS". 0x00xx are decisions, 0x00Fx are requests that could not be decided at all.
 */
export const REASON_CODES = {
  OK_POLICY_EVALUATE: 0x4c530001,
  OK_DECISION_COMPUTE: 0x4c530002,
  LEASE_HELD_BY_OTHER: 0x4c530010,
  LEASE_TOKEN_INVALID: 0x4c530011,
  LEASE_TTL_OUT_OF_BOUNDS: 0x4c530012,
  LEASE_NOT_FOUND: 0x4c530013,
  LEASE_EXPIRED: 0x4c530014,
  LEASE_REVOKED: 0x4c530015,
  LEASE_ALREADY_REVOKED: 0x4c530016,
  LEASE_FENCED: 0x4c530017,
  LEASE_PURPOSE_MISMATCH: 0x4c530018,
  LEASE_HELD_BY_SELF: 0x4c530019,
  LEASE_HANDOFF_PENDING: 0x4c53001a,
  LEASE_BREAKING: 0x4c53001b,
  LEASE_RESUME_REQUIRED: 0x4c53001c,
  LEASE_GENERATION_STALE: 0x4c53001d,
  FENCE_EXHAUSTED: 0x4c53001e,
  QUORUM_NOT_MET: 0x4c530020,
  CAPACITY_EXCEEDED: 0x4c530021,
  IDEMPOTENCY_KEY_REUSED: 0x4c530022,
  FENCE_WENT_BACK: 0x4c530023,
  RECORD_CORRUPT: 0x4c530024,
  LEASE_RESERVED: 0x4c530025,
  INPUT_SCHEMA_INVALID: 0x4c5300f1,
  UPSTREAM_INPUT_MISSING: 0x4c5300f2,
  BUDGET_EXCEEDED: 0x4c5300f3,
  INTERNAL_PIPELINE_ERROR: 0x4c5300f4,
} as const;

export type Reason = keyof typeof REASON_CODES;

export function reasonCode(reason: Reason): number {
  return REASON_CODES[reason];
}
