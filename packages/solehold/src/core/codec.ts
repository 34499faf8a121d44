/**
 * The record as text, for stores that keep opaque values. One field a line, so that a person who looks
 * into the store can read it; no name may contain a control character, so a line break always separates.
 * The last line is a checksum: a damaged record is reported, never half-believed.
 */
import { MAX_U64 } from "./fence.ts";
import type { LeaseKey } from "./key.ts";
import { metadataProblem } from "./metadata.ts";
import { isPurpose } from "./purpose.ts";
import {
  type IdempotencyMark,
  type LeaseRecord,
  type LeaseState,
  type Metadata,
  NO_METADATA,
} from "./record.ts";

const FORMAT = "S2";
const FIELD_COUNT = 32;
/** As they are written here, and in no other way: what a person mistyped is damage, not another number. */
const DECIMAL = /^(?:0|[1-9]\d{0,19})$/;

export function encodeRecord(record: LeaseRecord): string {
  const { key, handoff, idempotency, reservation } = record;
  const lines = [
    FORMAT,
    record.nonce,
    key.tenant,
    key.name,
    record.holder,
    record.purpose,
    record.tokenHash,
    record.term,
    record.generation,
    record.ttlMs,
    record.grantedAtMs,
    record.renewedAtMs,
    record.expiresAtMs,
    record.endedAtMs ?? "",
    record.state,
    record.renewals,
    record.resumeRequired ? 1 : 0,
    record.breakAtMs ?? "",
    handoff?.successor ?? "",
    handoff?.deadlineMs ?? "",
    idempotency?.op ?? "",
    marked(idempotency, "keyHash"),
    marked(idempotency, "fingerprint"),
    marked(idempotency, "sealedToken"),
    record.note,
    reservation?.ticket ?? "",
    reservation?.deadlineMs ?? "",
    record.ticket,
    record.metadata === NO_METADATA ? "" : metadataText(record.metadata),
    record.minHoldUntilMs ?? "",
    record.lockDelayMs === 0 ? "" : record.lockDelayMs,
    "",
  ];
  // One join of everything: a string that is put together from two is copied once more to be read.
  const body = lines.join("\n");
  return body + checksum(body);
}

export type DecodedRecord =
  | { readonly ok: true; readonly record: LeaseRecord }
  | { readonly ok: false; readonly detail: string };

/** Never throws. `key` is where the value was found: a record that names another key is damage, too. */
export function decodeRecord(text: string, key: LeaseKey): DecodedRecord {
  const end = text.lastIndexOf("\n") + 1;
  const fields = text.split("\n");
  if (fields[0] !== FORMAT) return damaged(`it does not begin with the record format ${FORMAT}`);
  if (fields.length !== FIELD_COUNT) return damaged(`it has ${fields.length} of ${FIELD_COUNT} fields`);
  if (text.slice(end) !== checksum(text.slice(0, end)))
    return damaged("its checksum does not fit its content");
  if (fields[2] !== key.tenant || fields[3] !== key.name) return damaged("it belongs to another key");
  try {
    return { ok: true, record: recordFrom(fields, key) };
  } catch (error) {
    return damaged(error instanceof Error ? error.message : String(error));
  }
}

function damaged(detail: string): DecodedRecord {
  return { ok: false, detail };
}

function recordFrom(fields: readonly string[], key: LeaseKey): LeaseRecord {
  const at = (index: number): string => fields[index] ?? "";
  const purpose = at(5);
  if (!isPurpose(purpose)) throw new Error(`its purpose '${purpose}' is unknown`);
  return {
    key,
    holder: at(4),
    purpose,
    tokenHash: at(6),
    term: unsigned("term", at(7)),
    generation: unsigned("generation", at(8)),
    ttlMs: wholeNumber("ttlMs", at(9)),
    grantedAtMs: wholeNumber("grantedAtMs", at(10)),
    renewedAtMs: wholeNumber("renewedAtMs", at(11)),
    expiresAtMs: wholeNumber("expiresAtMs", at(12)),
    endedAtMs: at(13) === "" ? null : wholeNumber("endedAtMs", at(13)),
    state: stateOf(at(14)),
    renewals: wholeNumber("renewals", at(15)),
    resumeRequired: yesOrNo("resumeRequired", at(16)),
    breakAtMs: at(17) === "" ? null : wholeNumber("breakAtMs", at(17)),
    minHoldUntilMs: at(29) === "" ? null : wholeNumber("minHoldUntilMs", at(29)),
    lockDelayMs: at(30) === "" ? 0 : wholeNumber("lockDelayMs", at(30)),
    handoff:
      at(18) === "" ? null : { successor: at(18), deadlineMs: wholeNumber("handoff.deadlineMs", at(19)) },
    reservation:
      at(25) === "" ? null : { ticket: at(25), deadlineMs: wholeNumber("reservation.deadlineMs", at(26)) },
    ticket: at(27),
    nonce: at(1),
    idempotency: at(20) === "" ? null : markFrom(fields),
    note: at(24),
    metadata: at(28) === "" ? NO_METADATA : metadataFrom(at(28)),
  };
}

function markFrom(fields: readonly string[]): IdempotencyMark {
  const [op = "", ...lines] = fields.slice(20, 24);
  const [keyHash, fingerprint, sealedToken] = lines.map((line) => line.split(" ")) as [
    string[],
    string[],
    string[],
  ];
  const [last, grant] = [0, 1].map((index) => ({
    keyHash: keyHash[index] ?? "",
    fingerprint: fingerprint[index] ?? "",
    sealedToken: sealedToken[index] ?? "",
  })) as [GrantMark, GrantMark];
  return keyHash.length < 2 ? { op, ...last } : { op, ...last, grant };
}

type GrantMark = NonNullable<IdempotencyMark["grant"]>;

/** The last command's, and after a space the grant's, where that is another. */
function marked(mark: IdempotencyMark | null, field: keyof GrantMark): string {
  if (mark === null) return "";
  return mark.grant === undefined ? mark[field] : `${mark[field]} ${mark.grant[field]}`;
}

/** JSON escapes what would break a line. */
function metadataText(metadata: Metadata): string {
  const text = JSON.stringify(metadata);
  return text === "{}" ? "" : text;
}

function metadataFrom(text: string): Metadata {
  const parsed: unknown = JSON.parse(text);
  const problem = metadataProblem(parsed);
  if (problem !== null) throw new Error(`its metadata ${problem}`);
  return parsed as Metadata;
}

function stateOf(text: string): LeaseState {
  if (text === "held" || text === "released" || text === "revoked") return text;
  throw new Error(`its state '${text}' is unknown`);
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (DECIMAL.test(text) && Number.isSafeInteger(value)) return value;
  throw new Error(`its ${name} '${text}' is not a whole number`);
}

function unsigned(name: string, text: string): bigint {
  const value = DECIMAL.test(text) ? BigInt(text) : null;
  if (value !== null && value <= MAX_U64) return value;
  throw new Error(`its ${name} '${text}' is not an unsigned 64-bit number`);
}

function yesOrNo(name: string, text: string): boolean {
  if (text === "1" || text === "0") return text === "1";
  throw new Error(`its ${name} '${text}' is neither 0 nor 1`);
}

/** `toString(16)` takes longer for a number beyond 31 bits than the whole sum. */
const HEX_BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** FNV-1a, 32 bit, over UTF-16 units: against accidents (bit rot, a cut write), not against attackers. */
function checksum(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  const at = (shift: number): string => HEX_BYTES[(hash >>> shift) & 0xff] ?? "";
  return at(24) + at(16) + at(8) + at(0);
}
