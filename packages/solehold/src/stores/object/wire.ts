/**
 * The lease object: JSON with six fields that every reader of the format understands (database_key,
 * holder_id, term, generation, acquired_at_ms, expires_at_ms), and one field `solehold`, which others ignore: the whole
 * record in core's text form, and what the store keeps with it.
 *
 * Others may write, too: an object without `solehold` is a held writer lease, and a missing term is 1. Any
 * other missing field is damage, reported by name. A lease that was released is written as one that has
 * expired, so that others take it over with the next generation.
 */
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import {
  BASE_TERM,
  claimableFrom,
  decodeRecord,
  encodeRecord,
  type LeaseKey,
  type LeaseRecord,
  MAX_U64,
  plainRecord,
} from "../../core/index.ts";

/** What a store knows about a write besides its record. */
export interface WireOrigin {
  /** The version that this write replaced; null when it created the object. */
  readonly previous: string | null;
  /** The epoch of the store's clock that the instants belong to. */
  readonly epoch: number;
}

export type DecodedWire =
  | { readonly ok: true; readonly record: LeaseRecord; readonly origin: WireOrigin | null }
  | { readonly ok: false; readonly detail: string };

type Fields = Readonly<Record<string, unknown>>;
type Common = ReturnType<typeof commonOf>;

const FORMAT = 2;
const CHECK_LENGTH = 16;
const DECIMAL = /^(?:0|[1-9]\d{0,19})$/;
/** Marks a number that is kept as the text it was written as. */
const NUMBER_MARK = "\0";

export function encodeWire(record: LeaseRecord, origin: WireOrigin): string {
  const body = bodyOf(record, origin);
  return `${body.slice(0, -2)},"check":"${checkOf(body)}"}}\n`;
}

function bodyOf(record: LeaseRecord, { previous, epoch }: WireOrigin): string {
  const { key, holder, term, generation, grantedAtMs, expiryForOthersMs } = commonOf(record);
  return (
    `{"database_key":${JSON.stringify(key.name)},"holder_id":${JSON.stringify(holder)},` +
    `"term":${term},"generation":${generation},"acquired_at_ms":${grantedAtMs},` +
    `"expires_at_ms":${expiryForOthersMs},` +
    `"solehold":${JSON.stringify({ format: FORMAT, record: encodeRecord(record), previous, epoch })}}`
  );
}

/** Against accidents: a digit that flipped is damage, not another lease. */
function checkOf(body: string): string {
  return createHash("sha256").update(body).digest("hex").slice(0, CHECK_LENGTH);
}

function commonOf(record: LeaseRecord) {
  const { key, holder, term, generation, grantedAtMs } = record;
  return { key, holder, term, generation, grantedAtMs, expiryForOthersMs: expiryForOthers(record) };
}

/** Others know neither releases nor handoffs nor closed periods, but they do know expiry. */
function expiryForOthers(record: LeaseRecord): number {
  const { state, expiresAtMs, endedAtMs } = record;
  if (state !== "released") return Math.max(expiresAtMs, claimableFrom(record));
  return Math.max(Math.min(expiresAtMs, endedAtMs ?? 0), claimableFrom(record));
}

/** Never throws. `key` is where the object was found: one that names another key is damage, too. */
export function decodeWire(text: string, key: LeaseKey): DecodedWire {
  try {
    const fields: unknown = JSON.parse(text);
    if (!isObject(fields)) throw new Error("it is not a JSON object");
    const common = commonFrom(parseExactly(text), key);
    if (fields.solehold === undefined) return { ok: true, record: foreignRecord(common, text), origin: null };
    return ownFrom(fields.solehold, common);
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) };
  }
}

/** Every number as the text it was written as: doubles lose integers above 2^53. `text` must be valid JSON. */
function parseExactly(text: string): Fields {
  const tokens = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
  const marked = text.replace(tokens, (token) =>
    token.startsWith('"') ? token : JSON.stringify(NUMBER_MARK + token),
  );
  return JSON.parse(marked) as Fields;
}

function commonFrom(fields: Fields, key: LeaseKey): Common {
  const holder = text(fields, "holder_id");
  if (text(fields, "database_key") !== key.name) throw new Error("it belongs to another key");
  return {
    key,
    holder,
    term: fields.term === undefined ? BASE_TERM : unsigned(fields, "term"),
    generation: unsigned(fields, "generation"),
    grantedAtMs: instant(fields, "acquired_at_ms"),
    expiryForOthersMs: instant(fields, "expires_at_ms"),
  };
}

function ownFrom(own: unknown, common: Common): DecodedWire {
  if (!isObject(own)) throw new Error("its solehold is not an object");
  const { format, record: text, previous, epoch, check } = own;
  if (format !== FORMAT)
    throw new Error(`it has format ${String(format)}, this version reads format ${FORMAT}`);
  const decoded = decodeRecord(String(text), common.key);
  if (!decoded.ok) return decoded;
  const { record } = decoded;
  const origin = { previous, epoch } as WireOrigin;
  // The check was made of what we write, so whatever differs from that in type or content does not fit it.
  if (!isDeepStrictEqual(commonOf(record), common) || check !== checkOf(bodyOf(record, origin)))
    throw new Error("its check does not fit its content");
  return { ok: true, record, origin };
}

/** A lease that somebody else wrote, as a record. Its content stands for the nonce that it lacks. */
function foreignRecord({ expiryForOthersMs: expiresAtMs, ...common }: Common, text: string): LeaseRecord {
  const { grantedAtMs } = common;
  return plainRecord({
    ...common,
    purpose: "StateWrite",
    ttlMs: Math.max(1, expiresAtMs - grantedAtMs),
    renewedAtMs: grantedAtMs,
    expiresAtMs,
    nonce: `foreign:${checkOf(text)}`,
  });
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function present(fields: Fields, name: string): unknown {
  const value = fields[name];
  if (value === undefined) throw new Error(`its field ${name} is missing`);
  return value;
}

function text(fields: Fields, name: string): string {
  const value = present(fields, name);
  if (typeof value === "string" && value !== "" && !value.startsWith(NUMBER_MARK)) return value;
  throw new Error(`its ${name} is not a text`);
}

function unsigned(fields: Fields, name: string): bigint {
  const value = String(present(fields, name));
  const digits = value.startsWith(NUMBER_MARK) ? value.slice(1) : JSON.stringify(value);
  const number = DECIMAL.test(digits) ? BigInt(digits) : null;
  if (number !== null && number <= MAX_U64) return number;
  throw new Error(`its ${name} ${digits} is not an unsigned 64-bit number`);
}

function instant(fields: Fields, name: string): number {
  const value = Number(unsigned(fields, name));
  if (Number.isSafeInteger(value)) return value;
  throw new Error(`its ${name} ${value} is too large`);
}
