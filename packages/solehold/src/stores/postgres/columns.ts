/**
 * The columns of the table and the record: what goes where, and back.
 *
 * Whatever a person or a report would ask for, and whatever the database compares, has a column. The rest
 * is one JSON object in which usual values are left out: it makes rows small and writes fast, and a later
 * field of the record needs no new column.
 *
 * Instants are whole milliseconds (bigint), because that is what the rest of Solehold computes with and a
 * timestamptz would have to be rounded on every way; the view beside the table shows them as timestamps.
 * Terms and generations are unsigned 64-bit numbers, which only numeric(20,0) holds.
 */
import { type LeaseKey, type LeaseRecord, type LeaseState, MAX_U64 } from "../../core/index.ts";
import { type StoredRecord, StoreError } from "../../store/index.ts";
import { detailsFrom, detailsOf } from "./details.ts";
import { NULL_MARK, SEPARATOR } from "./sql-text.ts";

export interface Column {
  readonly name: string;
  readonly type: "text" | "bigint" | "numeric(20,0)" | "json";
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
  column("lease_token_hash", "text"),
  column("lease_state", "text"),
  column("term", "numeric(20,0)"),
  column("generation", "numeric(20,0)"),
  column("acquired_at_ms", "bigint"),
  column("renewed_at_ms", "bigint"),
  column("lease_expires_at_ms", "bigint"),
  column("released_at_ms", "bigint", "allowed"),
  column("idempotency_key_hash", "text", "allowed"),
  column("nonce", "text"),
  column("details", "json"),
];

const DETAILS_FIELD = COLUMNS.length - 1;

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

/**
 * One text (or null) a column. Numbers travel as text: the database reads them exactly. Throws on a text that
 * would be taken for two.
 */
export function columnValues(record: LeaseRecord): (string | null)[] {
  const { key, holder, tokenHash, idempotency, nonce } = record;
  const { tenant, name } = key;
  if (isDivided(tenant) || isDivided(name) || isDivided(holder) || isDivided(tokenHash) || isDivided(nonce))
    throw dividedField(record);
  if (idempotency !== null && isDivided(idempotency.keyHash)) throw dividedField(record);
  const grantedAtMs = String(record.grantedAtMs);
  return [
    tenant,
    name,
    holder,
    tokenHash,
    DATABASE_STATES[record.state],
    String(record.term),
    String(record.generation),
    grantedAtMs,
    record.renewedAtMs === record.grantedAtMs ? grantedAtMs : String(record.renewedAtMs),
    String(record.expiresAtMs),
    record.endedAtMs === null ? null : String(record.endedAtMs),
    idempotency === null ? null : idempotency.keyHash,
    nonce,
    detailsOf(record),
  ];
}

/** No expression: whoever runs one for each text of each lone write can tell it from the rest of its work. */
function isDivided(text: string): boolean {
  return text.includes(SEPARATOR) || text.includes(NULL_MARK);
}

/** The columns that a plain end changes, in the order of its statement. */
export function endValues(record: LeaseRecord): (string | null)[] {
  if (isDivided(record.nonce)) throw dividedField(record);
  const { state, endedAtMs, nonce } = record;
  return [DATABASE_STATES[state], endedAtMs === null ? null : String(endedAtMs), nonce];
}

function dividedField({ key, holder, tokenHash, idempotency, nonce }: LeaseRecord): StoreError {
  const { tenant, name } = key;
  const texts = { tenant, name, holder, tokenHash, nonce, "idempotency.keyHash": idempotency?.keyHash ?? "" };
  const [field, text] = Object.entries(texts).find(([, each]) => isDivided(each)) ?? [];
  const message = `a record's ${field} must not contain a line break or a tab, got ${JSON.stringify(text)}`;
  return new StoreError("config", message, { outcome: "not-applied" });
}

/** Reads the version and the columns as one text. Never throws: what makes no sense is reported as corrupt. */
export function storedRecordFrom(row: string, key: LeaseKey): StoredRecord {
  const [version = "", ...fields] = row.split(SEPARATOR);
  try {
    return { kind: "found", record: recordFrom(fields, key), version };
  } catch (error) {
    return { kind: "corrupt", version, detail: error instanceof Error ? error.message : String(error) };
  }
}

function recordFrom(fields: readonly string[], key: LeaseKey): LeaseRecord {
  const at = (index: number): string => fields[index] ?? "";
  if (at(0) !== key.tenant || at(1) !== key.name) throw new Error("its row belongs to another key");
  const state = RECORD_STATES.get(at(4));
  if (state === undefined) throw new Error(`its lease_state '${at(4)}' is unknown`);
  const details = detailsFrom(fields.slice(DETAILS_FIELD).join(SEPARATOR));
  const { idempotency } = details;
  if ((idempotency === null) !== (at(11) === ""))
    throw new Error("its idempotency_key_hash does not fit its details");
  return {
    key,
    holder: at(2),
    purpose: details.purpose,
    tokenHash: at(3),
    term: unsigned("term", at(5)),
    generation: unsigned("generation", at(6)),
    ttlMs: details.ttlMs,
    grantedAtMs: whole("acquired_at_ms", at(7)),
    renewedAtMs: whole("renewed_at_ms", at(8)),
    expiresAtMs: whole("lease_expires_at_ms", at(9)),
    endedAtMs: at(10) === "" ? null : whole("released_at_ms", at(10)),
    state,
    renewals: details.renewals,
    resumeRequired: details.resumeRequired,
    breakAtMs: details.breakAtMs,
    handoff: details.handoff,
    nonce: at(12),
    idempotency: idempotency === null ? null : { ...idempotency, keyHash: at(11) },
    note: details.note,
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
