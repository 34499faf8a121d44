/**
 * Why a decision came out as it did: the one table of reasons. Every decision carries exactly one reason. Its number is
 * stable and travels in replies and in the audit trail; its name is for `switch`; everything else that anybody derives
 * from a reason (an HTTP status, the service's code, a sentence, what a waiter or a holder does) is a column here.
 *
 * 0x4C53 is "LS". 0x00xx are decisions, 0x00Fx are requests that could not be decided at all. BUDGET_EXCEEDED is never
 * given: documents of the protocol name it, so its number stays taken.
 */

/** The lease service's names, as its callers know them. Several reasons share one. */
export type LeaseServiceCode =
  | "LS_OK"
  | "LS_EXPIRED"
  | "LS_STALE_USE"
  | "LS_ALREADY_REVOKED"
  | "LS_PURPOSE_MISMATCH"
  | "LS_NOT_FOUND"
  | "LS_CAPACITY_EXCEEDED"
  | "LS_HELD"
  | "LS_TOKEN_INVALID"
  | "LS_RESUME_REQUIRED"
  | "LS_QUORUM_NOT_MET"
  | "LS_FENCED"
  | "LS_CORRUPT"
  | "LS_INVALID"
  | "LS_UNAVAILABLE";

/** How a holder lost its lease, by the store's word. */
export type LossByDecision = "expired" | "superseded" | "revoked" | "released" | "store-lost-data";

export interface ReasonRow {
  readonly code: number;
  /** The HTTP status of an answer with this reason. */
  readonly status: number;
  readonly serviceCode: LeaseServiceCode;
  /** Whether the same acquire may succeed later without any change. "dated": only where the denial says from when on. */
  readonly waitable: "yes" | "dated" | "no";
  /** How a holder that meets it at a renewal lost its lease. Null: only this request is refused, nothing is lost by it. */
  readonly loss: LossByDecision | null;
  /** For people: what is so, and what to do. "It" is the lease. */
  readonly sentence: string;
}

function row(
  code: number,
  status: number,
  serviceCode: LeaseServiceCode,
  waitable: ReasonRow["waitable"],
  loss: ReasonRow["loss"],
  sentence: string,
): ReasonRow {
  return Object.freeze({ code, status, serviceCode, waitable, loss, sentence });
}

// biome-ignore format: one line a reason.
const TABLE = {
  //                             code, status, service code, waitable, loss, sentence
  OK_POLICY_EVALUATE: row(0x4c530001, 200, "LS_OK", "no", null, "the policy allows it"),
  OK_DECISION_COMPUTE: row(0x4c530002, 200, "LS_OK", "no", null, "it was granted"),
  LEASE_HELD_BY_OTHER: row(0x4c530010, 409, "LS_HELD", "yes", "superseded", "another holder has it"),
  LEASE_TOKEN_INVALID: row(0x4c530011, 409, "LS_TOKEN_INVALID", "no", "superseded", "the token is not the one of the current grant"),
  LEASE_TTL_OUT_OF_BOUNDS: row(0x4c530012, 400, "LS_INVALID", "no", null, "the ttl is not within the policy's bounds"),
  LEASE_NOT_FOUND: row(0x4c530013, 409, "LS_NOT_FOUND", "no", "released", "nothing was granted under this name"),
  LEASE_EXPIRED: row(0x4c530014, 409, "LS_EXPIRED", "no", "expired", "it has expired: acquire it again"),
  LEASE_REVOKED: row(0x4c530015, 409, "LS_ALREADY_REVOKED", "yes", "revoked", "it was revoked: it can be acquired once the time of its last holder is over"),
  LEASE_ALREADY_REVOKED: row(0x4c530016, 409, "LS_ALREADY_REVOKED", "no", "revoked", "it was revoked before"),
  LEASE_FENCED: row(0x4c530017, 412, "LS_FENCED", "no", "superseded", "a newer term exists: stop using this grant"),
  LEASE_PURPOSE_MISMATCH: row(0x4c530018, 409, "LS_PURPOSE_MISMATCH", "no", null, "it was granted for another purpose"),
  LEASE_HELD_BY_SELF: row(0x4c530019, 409, "LS_HELD", "yes", "superseded", "this holder already has it under another token: renew it with that token, or use another holder name"),
  LEASE_HANDOFF_PENDING: row(0x4c53001a, 409, "LS_HELD", "yes", "superseded", "it is reserved for a successor until the deadline of its handoff"),
  LEASE_BREAKING: row(0x4c53001b, 409, "LS_EXPIRED", "no", null, "an operator asked for it back: it can be used until it ends, but not prolonged"),
  LEASE_RESUME_REQUIRED: row(0x4c53001c, 409, "LS_RESUME_REQUIRED", "no", null, "the last holder did not finish: rebuild from persisted state, then resume"),
  LEASE_GENERATION_STALE: row(0x4c53001d, 412, "LS_EXPIRED", "no", "superseded", "another grant is current: stop using this one"),
  FENCE_EXHAUSTED: row(0x4c53001e, 412, "LS_FENCED", "no", "superseded", "its fences are used up: use another name"),
  QUORUM_NOT_MET: row(0x4c530020, 403, "LS_QUORUM_NOT_MET", "no", null, "not enough valid approvals"),
  CAPACITY_EXCEEDED: row(0x4c530021, 429, "LS_CAPACITY_EXCEEDED", "no", null, "this tenant has as many live leases as it may have"),
  IDEMPOTENCY_KEY_REUSED: row(0x4c530022, 400, "LS_INVALID", "no", null, "the idempotency key was used before with other arguments"),
  FENCE_WENT_BACK: row(0x4c530023, 412, "LS_FENCED", "dated", "store-lost-data", "the store lost writes: its fences went back"),
  RECORD_CORRUPT: row(0x4c530024, 409, "LS_CORRUPT", "no", null, "its record is damaged: an operator has to repair it (solehold repair)"),
  LEASE_RESERVED: row(0x4c530025, 409, "LS_HELD", "yes", "superseded", "it is kept for the next waiter, who may take it until the deadline"),
  LEASE_LOCK_DELAY: row(0x4c530026, 409, "LS_HELD", "yes", null, "it is closed: its minimum hold, or the delay after its expiry, is not over yet"),
  INPUT_SCHEMA_INVALID: row(0x4c5300f1, 400, "LS_INVALID", "no", null, "the request is not well formed"),
  UPSTREAM_INPUT_MISSING: row(0x4c5300f2, 400, "LS_INVALID", "no", null, "an input of the decision is missing"),
  BUDGET_EXCEEDED: row(0x4c5300f3, 429, "LS_INVALID", "no", null, "the decision would take too long"),
  INTERNAL_PIPELINE_ERROR: row(0x4c5300f4, 500, "LS_UNAVAILABLE", "no", null, "it could not be decided"),
};

export type Reason = keyof typeof TABLE;

export const REASONS: { readonly [reason in Reason]: ReasonRow } = Object.freeze(TABLE);

export function isReason(value: unknown): value is Reason {
  return typeof value === "string" && Object.hasOwn(REASONS, value);
}

export function reasonCode(reason: Reason): number {
  return REASONS[reason].code;
}
