/**
 * The columns of the table and the record: what goes where, and back.
 *
 * The columns are the truth, and each is readable on its own: no encoded record lies beside them. Instants
 * are whole milliseconds (bigint), because that is what the rest of Solehold computes with and a
 * timestamptz would have to be rounded on every way; the view beside the table shows them as timestamps.
 * Terms and generations are unsigned 64-bit numbers, which only numeric(20,0) holds.
 */
import { isPurpose, type LeaseKey, type LeaseRecord, type LeaseState, MAX_U64 } from "../../core/index.ts";
import type { StoredRecord } from "../contract.ts";

export interface Column {
  readonly name: string;
  readonly type: "text" | "bigint" | "numeric(20,0)" | "boolean";
  readonly nulls: "allowed" | "refused";
}

function column(name: string, type: Column["type"], nulls: Column["nulls"] = "refused"): Column {
  return { name, type, nulls };
}

/** In the order in which `columnValues` gives them and a row's text holds them. */
export const COLUMNS: readonly Column[] = [
  column("tenant_id", "text"),
  column("work_order_id", "text"),
  column("lease_owner_id", "text"),
  column("lease_purpose", "text"),
  column("lease_token_hash", "text"),
  column("lease_state", "text"),
  column("term", "numeric(20,0)"),
  column("generation", "numeric(20,0)"),
  column("ttl_ms", "bigint"),
  column("acquired_at_ms", "bigint"),
  column("renewed_at_ms", "bigint"),
  column("lease_expires_at_ms", "bigint"),
  column("released_at_ms", "bigint", "allowed"),
  column("renewals", "bigint"),
  column("resume_required", "boolean"),
  column("break_at_ms", "bigint", "allowed"),
  column("handoff_successor", "text", "allowed"),
  column("handoff_deadline_ms", "bigint", "allowed"),
  column("nonce", "text"),
  column("idempotency_operation", "text", "allowed"),
  column("idempotency_key_hash", "text", "allowed"),
  column("idempotency_fingerprint", "text", "allowed"),
  column("idempotency_sealed_token", "text", "allowed"),
  column("note", "text"),
];

/** No text of a record may contain a control character, so a line break always separates. */
const ROW_SEPARATOR = "\n";
export const ROW_SEPARATOR_SQL = "E'\\n'";

const DATABASE_STATES: Readonly<Record<LeaseState, string>> = {
  held: "ACTIVE",
  released: "RELEASED",
  revoked: "REVOKED",
};
const RECORD_STATES: ReadonlyMap<string, LeaseState> = new Map([
  ["ACTIVE", "held"],
  ["RELEASED", "released"],
  ["REVOKED", "revoked"],
]);

export function databaseState(state: LeaseState): string {
  return DATABASE_STATES[state];
}

/** One text (or null) a column. Numbers travel as text: the database reads them exactly. */
export function columnValues(record: LeaseRecord): (string | null)[] {
  const { key, handoff, idempotency } = record;
  return [
    key.tenant,
    key.name,
    record.holder,
    record.purpose,
    record.tokenHash,
    DATABASE_STATES[record.state],
    String(record.term),
    String(record.generation),
    String(record.ttlMs),
    String(record.grantedAtMs),
    String(record.renewedAtMs),
    String(record.expiresAtMs),
    textOrNull(record.endedAtMs),
    String(record.renewals),
    record.resumeRequired ? "t" : "f",
    textOrNull(record.breakAtMs),
    handoff?.successor ?? null,
    textOrNull(handoff?.deadlineMs ?? null),
    record.nonce,
    idempotency?.op ?? null,
    idempotency?.keyHash ?? null,
    idempotency?.fingerprint ?? null,
    idempotency?.sealedToken ?? null,
    record.note,
  ];
}

function textOrNull(value: number | null): string | null {
  return value === null ? null : String(value);
}

/** Reads the version and the columns as one text. Never throws: what makes no sense is reported as corrupt. */
export function storedRecordFrom(row: string, key: LeaseKey): StoredRecord {
  const [version = "", ...fields] = row.split(ROW_SEPARATOR);
  try {
    return { kind: "found", record: recordFrom(fields, key), version };
  } catch (error) {
    return { kind: "corrupt", version, detail: error instanceof Error ? error.message : String(error) };
  }
}

function recordFrom(fields: readonly string[], key: LeaseKey): LeaseRecord {
  if (fields.length !== COLUMNS.length)
    throw new Error(`a text of its row contains a line break (${fields.length} of ${COLUMNS.length} fields)`);
  const at = (index: number): string => fields[index] ?? "";
  if (at(0) !== key.tenant || at(1) !== key.name) throw new Error("its row belongs to another key");
  const purpose = at(3);
  if (!isPurpose(purpose)) throw new Error(`its lease_purpose '${purpose}' is unknown`);
  const state = RECORD_STATES.get(at(5));
  if (state === undefined) throw new Error(`its lease_state '${at(5)}' is unknown`);
  return {
    key,
    holder: at(2),
    purpose,
    tokenHash: at(4),
    term: unsigned("term", at(6)),
    generation: unsigned("generation", at(7)),
    ttlMs: whole("ttl_ms", at(8)),
    grantedAtMs: whole("acquired_at_ms", at(9)),
    renewedAtMs: whole("renewed_at_ms", at(10)),
    expiresAtMs: whole("lease_expires_at_ms", at(11)),
    endedAtMs: at(12) === "" ? null : whole("released_at_ms", at(12)),
    state,
    renewals: whole("renewals", at(13)),
    resumeRequired: at(14) === "t",
    breakAtMs: at(15) === "" ? null : whole("break_at_ms", at(15)),
    handoff: at(16) === "" ? null : { successor: at(16), deadlineMs: whole("handoff_deadline_ms", at(17)) },
    nonce: at(18),
    idempotency:
      at(19) === "" ? null : { op: at(19), keyHash: at(20), fingerprint: at(21), sealedToken: at(22) },
    note: at(23),
  };
}

function whole(name: string, text: string): number {
  const value = Number(text);
  if (text === "" || !Number.isSafeInteger(value))
    throw new Error(`its ${name} '${text}' is not a whole number`);
  return value;
}

function unsigned(name: string, text: string): bigint {
  const value = /^\d+$/.test(text) ? BigInt(text) : -1n;
  if (value < 0n || value > MAX_U64)
    throw new Error(`its ${name} '${text}' is not an unsigned 64-bit number`);
  return value;
}
