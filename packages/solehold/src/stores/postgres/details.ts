/**
 * The fields of a record that have no column of their own, as JSON. What has its usual value is left out, so
 * that most rows say no more than `{"ttlMs":30000}`.
 */
import {
  DEFAULT_PURPOSE,
  type Handoff,
  type IdempotencyMark,
  isPurpose,
  type LeaseRecord,
  type Purpose,
} from "../../core/index.ts";

export interface Details {
  readonly purpose: Purpose;
  readonly ttlMs: number;
  readonly renewals: number;
  readonly resumeRequired: boolean;
  readonly breakAtMs: number | null;
  readonly handoff: Handoff | null;
  /** Its key's hash has a column. */
  readonly idempotency: Omit<IdempotencyMark, "keyHash"> | null;
  readonly note: string;
}

export function detailsOf(record: LeaseRecord): string {
  return isUsual(record) ? `{"ttlMs":${record.ttlMs}}` : unusualDetails(record);
}

function isUsual(record: LeaseRecord): boolean {
  return (
    record.purpose === DEFAULT_PURPOSE &&
    record.renewals === 0 &&
    record.note === "" &&
    record.idempotency === null &&
    record.handoff === null &&
    record.breakAtMs === null &&
    !record.resumeRequired
  );
}

function unusualDetails(record: LeaseRecord): string {
  const { idempotency } = record;
  return JSON.stringify({
    ttlMs: record.ttlMs,
    purpose: record.purpose === DEFAULT_PURPOSE ? undefined : record.purpose,
    renewals: record.renewals === 0 ? undefined : record.renewals,
    resumeRequired: record.resumeRequired ? true : undefined,
    breakAtMs: record.breakAtMs ?? undefined,
    handoff: record.handoff ?? undefined,
    idempotency:
      idempotency === null
        ? undefined
        : { op: idempotency.op, fingerprint: idempotency.fingerprint, sealedToken: idempotency.sealedToken },
    note: record.note === "" ? undefined : record.note,
  });
}

/** Throws what is wrong with it, in words for the operator who finds the row. */
export function detailsFrom(json: string): Details {
  const fields = fieldsOf("details", JSON.parse(json));
  const { purpose = DEFAULT_PURPOSE, resumeRequired = false } = fields;
  if (!isPurpose(purpose)) throw new Error(`its details name the unknown purpose '${String(purpose)}'`);
  if (typeof resumeRequired !== "boolean") throw new Error("its details.resumeRequired is not true or false");
  return {
    purpose,
    ttlMs: whole("ttlMs", fields.ttlMs),
    renewals: whole("renewals", fields.renewals ?? 0),
    resumeRequired,
    breakAtMs: fields.breakAtMs === undefined ? null : whole("breakAtMs", fields.breakAtMs),
    handoff: fields.handoff === undefined ? null : handoffFrom(fieldsOf("handoff", fields.handoff)),
    idempotency:
      fields.idempotency === undefined ? null : markFrom(fieldsOf("idempotency", fields.idempotency)),
    note: text("note", fields.note ?? ""),
  };
}

function handoffFrom(fields: Readonly<Record<string, unknown>>): Handoff {
  return {
    successor: text("handoff.successor", fields.successor),
    deadlineMs: whole("handoff.deadlineMs", fields.deadlineMs),
  };
}

function markFrom(fields: Readonly<Record<string, unknown>>): Omit<IdempotencyMark, "keyHash"> {
  return {
    op: text("idempotency.op", fields.op),
    fingerprint: text("idempotency.fingerprint", fields.fingerprint),
    sealedToken: text("idempotency.sealedToken", fields.sealedToken),
  };
}

function fieldsOf(name: string, value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error(`its ${name} are not an object`);
  return { ...value };
}

function whole(name: string, value: unknown): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value))
    throw new Error(`its details.${name} is not a whole number`);
  return value;
}

function text(name: string, value: unknown): string {
  if (typeof value !== "string") throw new Error(`its details.${name} is not a text`);
  return value;
}
