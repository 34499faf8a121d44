/**
 * The lease object: JSON with six fields that every reader of the format understands (database_key,
 * holder_id, term, generation, acquired_at_ms, expires_at_ms), and one field `solehold` with the rest of
 * our record, which others ignore.
 *
 * Others may write, too: an object without `solehold` is a held writer lease, and a missing term is 1. Any
 * other missing field is damage, reported by name. A lease that was released is written as one that has
 * expired, so that others take it over with the next generation.
 */
import { createHash } from "node:crypto";
import { type LeaseKey, type LeaseRecord, MAX_U64, NO_TOKEN_HASH } from "../../core/index.ts";
import { numberLexemes } from "./lexemes.ts";
import { ownPartFrom, printOwnPart, type WireOrigin } from "./wire-own-part.ts";

export type DecodedWire =
  | { readonly ok: true; readonly record: LeaseRecord; readonly origin: WireOrigin | null }
  | { readonly ok: false; readonly detail: string };

const BASE_TERM = "1";
const CHECK_LENGTH = 16;
const DECIMAL = /^(?:0|[1-9]\d{0,19})$/;

export function encodeWire(record: LeaseRecord, origin: WireOrigin): string {
  const body = bodyOf(record, origin);
  return `${body.slice(0, -2)},"check":"${checkOf(body)}"}}\n`;
}

function bodyOf(record: LeaseRecord, origin: WireOrigin): string {
  return (
    `{"database_key":${JSON.stringify(record.key.name)},"holder_id":${JSON.stringify(record.holder)},` +
    `"term":${record.term},"generation":${record.generation},"acquired_at_ms":${record.grantedAtMs},` +
    `"expires_at_ms":${expiryForOthers(record)},"solehold":${printOwnPart(record, origin)}}`
  );
}

/** Against accidents: a digit that flipped is damage, not another lease. */
function checkOf(body: string): string {
  return createHash("sha256").update(body).digest("hex").slice(0, CHECK_LENGTH);
}

/** Others know neither releases nor handoffs, but they do know expiry. */
function expiryForOthers({ state, expiresAtMs, endedAtMs, handoff }: LeaseRecord): number {
  if (state !== "released") return expiresAtMs;
  return Math.max(Math.min(expiresAtMs, endedAtMs ?? 0), handoff?.deadlineMs ?? 0);
}

/** Never throws. `key` is where the object was found: one that names another key is damage, too. */
export function decodeWire(text: string, key: LeaseKey): DecodedWire {
  try {
    const fields: unknown = JSON.parse(text);
    if (typeof fields !== "object" || fields === null || Array.isArray(fields))
      throw new Error("it is not a JSON object");
    return decodeFields(fields as Readonly<Record<string, unknown>>, text, key);
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) };
  }
}

function decodeFields(fields: Readonly<Record<string, unknown>>, text: string, key: LeaseKey): DecodedWire {
  const numbers = numberLexemes(text);
  const holder = stringField(fields, "holder_id");
  if (stringField(fields, "database_key") !== key.name) throw new Error("it belongs to another key");
  const term = fields.term === undefined ? BigInt(BASE_TERM) : unsigned(fields, numbers, "term");
  const generation = unsigned(fields, numbers, "generation");
  const grantedAtMs = instant(fields, numbers, "acquired_at_ms");
  const expiresAtMs = instant(fields, numbers, "expires_at_ms");
  const common = { key, holder, term, generation, grantedAtMs };
  if (fields.solehold === undefined)
    return { ok: true, record: foreignRecord(common, expiresAtMs, text), origin: null };
  const { rest, origin, tenant, check } = ownPartFrom(fields.solehold);
  if (tenant !== key.tenant) throw new Error("it belongs to another tenant");
  const record: LeaseRecord = { ...common, ...rest };
  if (expiryForOthers(record) !== expiresAtMs || check !== checkOf(bodyOf(record, origin)))
    throw new Error("its check does not fit its content");
  return { ok: true, record, origin };
}

type Common = Pick<LeaseRecord, "key" | "holder" | "term" | "generation" | "grantedAtMs">;

/** A lease that somebody else wrote, as a record. Its content stands for the nonce that it lacks. */
function foreignRecord(common: Common, expiresAtMs: number, text: string): LeaseRecord {
  const { grantedAtMs } = common;
  return {
    ...common,
    purpose: "StateWrite",
    tokenHash: NO_TOKEN_HASH,
    ttlMs: Math.max(1, expiresAtMs - grantedAtMs),
    renewedAtMs: grantedAtMs,
    expiresAtMs,
    endedAtMs: null,
    state: "held",
    renewals: 0,
    resumeRequired: false,
    breakAtMs: null,
    handoff: null,
    nonce: `foreign:${checkOf(text)}`,
    idempotency: null,
    note: "",
  };
}

function present(fields: Readonly<Record<string, unknown>>, name: string): unknown {
  const value = fields[name];
  if (value === undefined) throw new Error(`its field ${name} is missing`);
  return value;
}

function stringField(fields: Readonly<Record<string, unknown>>, name: string): string {
  const value = present(fields, name);
  if (typeof value !== "string" || value === "") throw new Error(`its ${name} is not a text`);
  return value;
}

function unsigned(
  fields: Readonly<Record<string, unknown>>,
  numbers: ReadonlyMap<string, string>,
  name: string,
): bigint {
  const value = present(fields, name);
  const lexeme = numbers.get(name) ?? "";
  const number = DECIMAL.test(lexeme) ? BigInt(lexeme) : null;
  if (number !== null && number <= MAX_U64) return number;
  throw new Error(`its ${name} ${JSON.stringify(value)} is not an unsigned 64-bit number`);
}

function instant(
  fields: Readonly<Record<string, unknown>>,
  numbers: ReadonlyMap<string, string>,
  name: string,
): number {
  const value = Number(unsigned(fields, numbers, name));
  if (Number.isSafeInteger(value)) return value;
  throw new Error(`its ${name} ${value} is too large`);
}
