/** The field `solehold` of a lease object: what the six common fields do not say. */
import { isPurpose, type LeaseRecord } from "../../core/index.ts";

const FORMAT = 1;

/** What a store knows about a write besides its record. */
export interface WireOrigin {
  /** The version that this write replaced; null when it created the object. */
  readonly previous: string | null;
  /** The epoch of the store's clock that the instants belong to. */
  readonly epoch: number;
}

type Rest = Omit<LeaseRecord, "key" | "holder" | "term" | "generation" | "grantedAtMs">;

export interface OwnPart {
  readonly rest: Rest;
  readonly origin: WireOrigin;
  readonly tenant: string;
  readonly check: string;
}

/** Always in the same order, so that the check of a record can be computed again. */
export function printOwnPart(record: LeaseRecord, { previous, epoch }: WireOrigin): string {
  const { handoff, idempotency } = record;
  return JSON.stringify({
    format: FORMAT,
    tenant: record.key.tenant,
    state: record.state,
    purpose: record.purpose,
    token_hash: record.tokenHash,
    ttl_ms: record.ttlMs,
    renewed_at_ms: record.renewedAtMs,
    expires_at_ms: record.expiresAtMs,
    ended_at_ms: record.endedAtMs,
    renewals: record.renewals,
    resume_required: record.resumeRequired,
    break_at_ms: record.breakAtMs,
    handoff: handoff === null ? null : { successor: handoff.successor, deadline_ms: handoff.deadlineMs },
    nonce: record.nonce,
    idempotency:
      idempotency === null
        ? null
        : {
            op: idempotency.op,
            key_hash: idempotency.keyHash,
            fingerprint: idempotency.fingerprint,
            sealed_token: idempotency.sealedToken,
          },
    note: record.note,
    previous,
    epoch,
  });
}

/** Throws an Error that names the field. */
export function ownPartFrom(value: unknown): OwnPart {
  const own = fieldsOf("solehold", value);
  if (own.format !== FORMAT)
    throw new Error(`it has format ${String(own.format)}, this version reads format ${FORMAT}`);
  const { purpose, state } = own;
  if (!isPurpose(purpose)) throw new Error(`its purpose '${String(purpose)}' is unknown`);
  if (state !== "held" && state !== "released" && state !== "revoked")
    throw new Error(`its state '${String(state)}' is unknown`);
  const rest: Rest = {
    purpose,
    state,
    tokenHash: text(own, "token_hash"),
    ttlMs: whole(own, "ttl_ms"),
    renewedAtMs: whole(own, "renewed_at_ms"),
    expiresAtMs: whole(own, "expires_at_ms"),
    endedAtMs: own.ended_at_ms === null ? null : whole(own, "ended_at_ms"),
    renewals: whole(own, "renewals"),
    resumeRequired: yesOrNo(own, "resume_required"),
    breakAtMs: own.break_at_ms === null ? null : whole(own, "break_at_ms"),
    handoff: own.handoff === null ? null : handoffFrom(own.handoff),
    nonce: text(own, "nonce"),
    idempotency: own.idempotency === null ? null : markFrom(own.idempotency),
    note: text(own, "note"),
  };
  const previous = own.previous === null ? null : text(own, "previous");
  const origin = { previous, epoch: whole(own, "epoch") };
  return { rest, origin, tenant: text(own, "tenant"), check: text(own, "check") };
}

function handoffFrom(value: unknown): NonNullable<LeaseRecord["handoff"]> {
  const fields = fieldsOf("handoff", value);
  return { successor: text(fields, "successor"), deadlineMs: whole(fields, "deadline_ms") };
}

function markFrom(value: unknown): NonNullable<LeaseRecord["idempotency"]> {
  const fields = fieldsOf("idempotency", value);
  return {
    op: text(fields, "op"),
    keyHash: text(fields, "key_hash"),
    fingerprint: text(fields, "fingerprint"),
    sealedToken: text(fields, "sealed_token"),
  };
}

function fieldsOf(name: string, value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Readonly<Record<string, unknown>>;
  throw new Error(`its ${name} is not an object`);
}

function text(fields: Readonly<Record<string, unknown>>, name: string): string {
  const value = fields[name];
  if (typeof value === "string") return value;
  throw new Error(`its solehold.${name} is ${value === undefined ? "missing" : "not a text"}`);
}

function whole(fields: Readonly<Record<string, unknown>>, name: string): number {
  const value = fields[name];
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw new Error(`its solehold.${name} is ${value === undefined ? "missing" : "not a whole number"}`);
}

function yesOrNo(fields: Readonly<Record<string, unknown>>, name: string): boolean {
  const value = fields[name];
  if (typeof value === "boolean") return value;
  throw new Error(`its solehold.${name} is neither true nor false`);
}
