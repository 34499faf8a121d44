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
import {
  BASE_TERM,
  claimableFrom,
  decodeRecord,
  encodeRecord,
  type IdempotencyMark,
  type LeaseKey,
  type LeaseRecord,
  MAX_U64,
  NO_METADATA,
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
type Common = Pick<LeaseRecord, "key" | "holder" | "term" | "generation" | "grantedAtMs">;
type Rest = Omit<LeaseRecord, keyof Common>;

const FORMAT = 1;
const CHECK_LENGTH = 16;
const DECIMAL = /^(?:0|[1-9]\d{0,19})$/;
/** Marks a number that is kept as the text it was written as. */
const NUMBER_MARK = "\0";

/** The fields of `solehold` in the order in which they are written: the check depends on it. */
const REST = (
  "state purpose tokenHash ttlMs renewedAtMs expiresAtMs endedAtMs renewals resumeRequired breakAtMs " +
  "handoff nonce idempotency note"
).split(" ");
const HANDOFF = ["successor", "deadlineMs"];
const RESERVATION = ["ticket", "deadlineMs"];
const MARK = ["keyHash", "fingerprint", "sealedToken"];
const IDEMPOTENCY = ["op", ...MARK];

export function encodeWire(record: LeaseRecord, origin: WireOrigin): string {
  const body = bodyOf(record, origin);
  return `${body.slice(0, -2)},"check":"${checkOf(body)}"}}\n`;
}

function bodyOf(record: LeaseRecord, { previous, epoch }: WireOrigin): string {
  const own = {
    format: FORMAT,
    tenant: record.key.tenant,
    ...toWire(record, REST),
    handoff: record.handoff && toWire(record.handoff, HANDOFF),
    idempotency: record.idempotency && markToWire(record.idempotency),
    previous,
    epoch,
    // Left out where they say nothing: an object from before there were such fields fits its check.
    ...(record.reservation === null ? {} : { reservation: toWire(record.reservation, RESERVATION) }),
    ...(record.ticket === "" ? {} : { ticket: record.ticket }),
    ...(record.minHoldUntilMs === null ? {} : { min_hold_until_ms: record.minHoldUntilMs }),
    ...(record.lockDelayMs === 0 ? {} : { lock_delay_ms: record.lockDelayMs }),
    ...(Object.keys(record.metadata).length === 0 ? {} : { metadata: record.metadata }),
  };
  return (
    `{"database_key":${JSON.stringify(record.key.name)},"holder_id":${JSON.stringify(record.holder)},` +
    `"term":${record.term},"generation":${record.generation},"acquired_at_ms":${record.grantedAtMs},` +
    `"expires_at_ms":${expiryForOthers(record)},"solehold":${JSON.stringify(own)}}`
  );
}

/** Against accidents: a digit that flipped is damage, not another lease. */
function checkOf(body: string): string {
  return createHash("sha256").update(body).digest("hex").slice(0, CHECK_LENGTH);
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
    const { record, origin } = recordFrom(common, fields, text);
    return { ok: true, record, origin };
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

function commonFrom(fields: Fields, key: LeaseKey): Common & { readonly expiryForOthersMs: number } {
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

function recordFrom(
  { expiryForOthersMs, ...common }: ReturnType<typeof commonFrom>,
  { solehold }: Fields,
  text: string,
): { readonly record: LeaseRecord; readonly origin: WireOrigin | null } {
  if (solehold === undefined) return { record: foreignRecord(common, expiryForOthersMs, text), origin: null };
  if (!isObject(solehold)) throw new Error("its solehold is not an object");
  if (solehold.format !== FORMAT)
    throw new Error(`it has format ${String(solehold.format)}, this version reads format ${FORMAT}`);
  if (solehold.tenant !== common.key.tenant) throw new Error("it belongs to another tenant");
  const record = validated({
    ...common,
    ...(fromWire(solehold, REST) as unknown as Rest),
    handoff: nested<LeaseRecord["handoff"]>(solehold.handoff, HANDOFF),
    reservation: nested<LeaseRecord["reservation"]>(solehold.reservation, RESERVATION),
    ticket: String(solehold.ticket ?? ""),
    minHoldUntilMs: (solehold.min_hold_until_ms ?? null) as number | null,
    lockDelayMs: (solehold.lock_delay_ms ?? 0) as number,
    idempotency: markFromWire(solehold.idempotency),
    metadata: (solehold.metadata ?? NO_METADATA) as LeaseRecord["metadata"],
  });
  const origin = { previous: solehold.previous, epoch: solehold.epoch } as WireOrigin;
  // The check was made of what we write, so whatever differs from that in type or content does not fit it.
  if (expiryForOthers(record) !== expiryForOthersMs || solehold.check !== checkOf(bodyOf(record, origin)))
    throw new Error("its check does not fit its content");
  return { record, origin };
}

/** Core knows what every field must be, and names the one that is not. */
function validated(candidate: LeaseRecord): LeaseRecord {
  const decoded = decodeRecord(encodeRecord(candidate), candidate.key);
  if (decoded.ok) return decoded.record;
  throw new Error(decoded.detail);
}

/** A lease that somebody else wrote, as a record. Its content stands for the nonce that it lacks. */
function foreignRecord(common: Common, expiresAtMs: number, text: string): LeaseRecord {
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

/** `tokenHash` is `token_hash` on the wire. */
function wireName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function toWire(source: object, names: readonly string[]): Fields {
  return Object.fromEntries(names.map((name) => [wireName(name), (source as Fields)[name]]));
}

function fromWire(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(names.map((name) => [name, present(fields, wireName(name))]));
}

function nested<Part>(value: unknown, names: readonly string[]): Part | null {
  return isObject(value) ? (fromWire(value, names) as Part) : null;
}

function markToWire({ grant, ...mark }: IdempotencyMark): Fields {
  const fields = toWire(mark, IDEMPOTENCY);
  return grant === undefined ? fields : { ...fields, grant: toWire(grant, MARK) };
}

function markFromWire(value: unknown): IdempotencyMark | null {
  const mark = nested<IdempotencyMark>(value, IDEMPOTENCY);
  const grant = isObject(value) ? nested<NonNullable<IdempotencyMark["grant"]>>(value.grant, MARK) : null;
  return mark === null || grant === null ? mark : { ...mark, grant };
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
