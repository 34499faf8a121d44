/**
 * A record as the value of a Redis key: one field a line, so that `redis-cli GET` shows something that a
 * person can read. First comes a header of fixed width, the nonce of the write, which the script compares
 * without looking for its end.
 *
 * Unlike the text of core's codec it has no checksum over the content, which costs a client more than all
 * the rest of a write; its last line is its length, which catches cut, joined and edited values.
 */
import { createHash } from "node:crypto";
import {
  type IdempotencyMark,
  isPurpose,
  type LeaseKey,
  type LeaseRecord,
  type LeaseState,
} from "../../core/index.ts";

/** As long as the nonces that Solehold draws. */
export const HEADER_LENGTH = 22;

const FIELD_COUNT = 26;
const HOLDER_FIELD = 4;
const WHOLE = /^(0|[1-9]\d*)$/;

/** 22 characters that are as unique as the nonce: longer nonces are hashed to 132 bits. */
export function headerOf(nonce: string): string {
  if (nonce.length === HEADER_LENGTH) return nonce;
  if (nonce.length < HEADER_LENGTH) return nonce.padEnd(HEADER_LENGTH);
  return createHash("sha256").update(nonce).digest("base64url").slice(0, HEADER_LENGTH);
}

/** Few pieces: joining them is what costs. Most records have none of the rare fields. */
export function encodeValue(record: LeaseRecord): string {
  const { key, nonce, idempotency } = record;
  const longNonce = nonce.length > HEADER_LENGTH ? nonce : "";
  const endedAt = record.endedAtMs === null ? "" : String(record.endedAtMs);
  const text = `${headerOf(nonce)}\n${longNonce}\n${key.tenant}\n${key.name}\n${record.holder}\n${record.state}\n${
    record.purpose
  }\n${record.term}\n${record.generation}\n${record.ttlMs}\n${record.grantedAtMs}\n${record.renewedAtMs}\n${
    record.expiresAtMs
  }\n${endedAt}\n${record.renewals}${demandsOf(record)}${record.tokenHash}${
    idempotency === null ? "\n\n\n\n\n" : textOf(idempotency)
  }${record.note}\n`;
  return text + text.length;
}

/** The lines between the count of renewals and the hash of the token. */
function demandsOf({ resumeRequired, breakAtMs, handoff }: LeaseRecord): string {
  if (!resumeRequired && breakAtMs === null && handoff === null) return "\n0\n\n\n\n";
  return `\n${resumeRequired ? 1 : 0}\n${breakAtMs ?? ""}\n${handoff?.successor ?? ""}\n${handoff?.deadlineMs ?? ""}\n`;
}

/** The lines between the hash of the token and the note. */
function textOf({ op, keyHash, fingerprint, sealedToken }: IdempotencyMark): string {
  return `\n${op}\n${keyHash}\n${fingerprint}\n${sealedToken}\n`;
}

/** The holder in a value, or in whatever stands there if it is damaged. */
export function holderIn(value: string): string {
  let at = 0;
  for (let line = 0; line < HOLDER_FIELD; line += 1) at = value.indexOf("\n", at) + 1;
  return value.slice(at, value.indexOf("\n", at));
}

export type DecodedValue =
  | { readonly ok: true; readonly record: LeaseRecord }
  | { readonly ok: false; readonly detail: string };

/** Never throws. `key` is where the value was found: a record that names another key is damage, too. */
export function decodeValue(value: string, key: LeaseKey): DecodedValue {
  const fields = value.split("\n");
  const at = (index: number): string => fields[index] ?? "";
  if (fields.length !== FIELD_COUNT) return damaged(`it has ${fields.length} of ${FIELD_COUNT} fields`);
  const length = at(FIELD_COUNT - 1);
  if (length !== String(value.length - length.length)) return damaged("its length is not what it says");
  if (at(2) !== key.tenant || at(3) !== key.name) return damaged("it belongs to another key");
  const nonce = at(1) === "" ? at(0).trimEnd() : at(1);
  if (headerOf(nonce) !== at(0)) return damaged("its header belongs to another write");
  try {
    return { ok: true, record: recordFrom(at, key, nonce) };
  } catch (error) {
    return damaged(error instanceof Error ? error.message : String(error));
  }
}

function damaged(detail: string): DecodedValue {
  return { ok: false, detail };
}

function recordFrom(at: (index: number) => string, key: LeaseKey, nonce: string): LeaseRecord {
  const purpose = at(6);
  if (!isPurpose(purpose)) throw new Error(`its purpose '${purpose}' is unknown`);
  return {
    key,
    holder: at(HOLDER_FIELD),
    purpose,
    tokenHash: at(19),
    term: BigInt(digits("term", at(7))),
    generation: BigInt(digits("generation", at(8))),
    ttlMs: wholeNumber("ttlMs", at(9)),
    grantedAtMs: wholeNumber("grantedAtMs", at(10)),
    renewedAtMs: wholeNumber("renewedAtMs", at(11)),
    expiresAtMs: wholeNumber("expiresAtMs", at(12)),
    endedAtMs: at(13) === "" ? null : wholeNumber("endedAtMs", at(13)),
    state: stateFrom(at(5)),
    renewals: wholeNumber("renewals", at(14)),
    resumeRequired: at(15) === "1",
    breakAtMs: at(16) === "" ? null : wholeNumber("breakAtMs", at(16)),
    handoff: at(18) === "" ? null : { successor: at(17), deadlineMs: wholeNumber("deadlineMs", at(18)) },
    nonce,
    idempotency: at(20) === "" ? null : markFrom(at),
    note: at(24),
  };
}

function markFrom(at: (index: number) => string): IdempotencyMark {
  return { op: at(20), keyHash: at(21), fingerprint: at(22), sealedToken: at(23) };
}

function stateFrom(text: string): LeaseState {
  if (text === "held" || text === "released" || text === "revoked") return text;
  throw new Error(`its state '${text}' is unknown`);
}

function digits(name: string, text: string): string {
  if (!WHOLE.test(text)) throw new Error(`its ${name} '${text}' is not a whole number`);
  return text;
}

function wholeNumber(name: string, text: string): number {
  const value = Number(digits(name, text));
  if (!Number.isSafeInteger(value)) throw new Error(`its ${name} '${text}' is too large`);
  return value;
}
