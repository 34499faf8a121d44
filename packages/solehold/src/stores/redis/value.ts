/**
 * A record as the value of a Redis key: text that a person can read with `redis-cli GET`. What changes most often comes
 * first, in lines of fixed width:
 *
 *   the state: the nonce of the write, state, when it ended ("-": it has not), was renewed, will expire, renewals
 *   the grant: when it was granted, generation, hash of the token
 *   the rest:  holder, tenant, name, purpose, ttl and what is rare, each on a line of its own
 *
 * So a client that knows what it replaces sends no more than the first line, or the first two, and the script keeps what
 * is behind as many characters. Its header, the nonce, is what the script compares. Times are counted from the grant;
 * the expiry from the last renewal.
 *
 * Unlike the text of core's codec it has no checksum over the content, which costs a client more than all the rest of a
 * write; its last line is its length, which catches cut, joined and edited values.
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

const HASH_LENGTH = 43;
const STATE_WIDTH = 75;
const GRANT_WIDTH = 81;
/** What is sent of a value that is not sent whole is never longer than this; a whole value always is. */
export const LONGEST_PART = STATE_WIDTH + 1 + GRANT_WIDTH;

const LINE_COUNT = 18;
const HOLDER_LINE = 2;
const NEVER = "-";
const WHOLE_NUMBER = /^(0|[1-9]\d*)$/;
const OFFSET = /^(0|-?[1-9]\d*)$/;
const SPACES = Array.from({ length: GRANT_WIDTH + 1 }, (_, count) => " ".repeat(count));

/** How much of a value is sent to replace another: all of it, or its first lines. */
export type Extent = "state" | "state and grant" | "all";

/** 22 characters that are as unique as the nonce: longer nonces are hashed to 132 bits. */
export function headerOf(nonce: string): string {
  if (nonce.length === HEADER_LENGTH) return nonce;
  if (nonce.length < HEADER_LENGTH) return nonce.padEnd(HEADER_LENGTH);
  return createHash("sha256").update(nonce).digest("base64url").slice(0, HEADER_LENGTH);
}

/** What has to be sent where `before` stands. */
export function extentOf(before: LeaseRecord, next: LeaseRecord): Extent {
  const sameRest =
    before.holder === next.holder &&
    before.purpose === next.purpose &&
    before.ttlMs === next.ttlMs &&
    before.term === next.term &&
    before.resumeRequired === next.resumeRequired &&
    before.breakAtMs === next.breakAtMs &&
    before.handoff === next.handoff &&
    before.idempotency === next.idempotency &&
    before.note === next.note;
  if (!sameRest || !fitsItsLines(before) || !fitsItsLines(next)) return "all";
  const sameGrant =
    before.grantedAtMs === next.grantedAtMs &&
    before.generation === next.generation &&
    before.tokenHash === next.tokenHash;
  return sameGrant ? "state" : "state and grant";
}

/** Whether its first two lines have the width that they should have: all records that are not very odd do. */
function fitsItsLines(record: LeaseRecord): boolean {
  const { grantedAtMs, renewedAtMs, endedAtMs } = record;
  return (
    record.nonce.length <= HEADER_LENGTH &&
    record.tokenHash.length <= HASH_LENGTH &&
    isShort(renewedAtMs - grantedAtMs) &&
    isShort(record.expiresAtMs - renewedAtMs) &&
    isShort((endedAtMs ?? grantedAtMs) - grantedAtMs) &&
    isShort(record.renewals)
  );
}

/** Of ten digits at most: as milliseconds, of four months. */
function isShort(value: number): boolean {
  return value >= 0 && value < 10_000_000_000;
}

/** As much of the value as `extent` says. `generation` is that of the record, as text. */
export function encodeExtent(record: LeaseRecord, extent: Extent, generation: string): string {
  const state = headerOf(record.nonce) + (record.endedAtMs === null ? ofHeld : ofEnded).text(record);
  if (extent === "state") return state;
  const granted = grantedText(record.grantedAtMs);
  const { tokenHash } = record;
  const spaces = SPACES[GRANT_WIDTH + 1 - granted.length - generation.length - 1 - tokenHash.length] ?? "";
  const first = `${state}${granted}${generation} ${tokenHash}${spaces}`;
  if (extent === "state and grant") return first;
  const text = `${first}\n${restOf(record)}\n`;
  return text + text.length;
}

export function encodeValue(record: LeaseRecord): string {
  return encodeExtent(record, "all", String(record.generation));
}

/**
 * The state line behind the nonce. Records that are written one after another mostly agree in it, and putting it together
 * takes longer than all else of a value: so the last one is kept.
 */
class StateText {
  #state: LeaseState = "held";
  #endedMs: number | null = null;
  #renewedMs = -1;
  #expiresMs = -1;
  #renewals = -1;
  #text = "";

  text(record: LeaseRecord): string {
    const { nonce, state, grantedAtMs, renewedAtMs, endedAtMs, renewals } = record;
    const endedMs = endedAtMs === null ? null : endedAtMs - grantedAtMs;
    const renewedMs = renewedAtMs - grantedAtMs;
    const expiresMs = record.expiresAtMs - renewedAtMs;
    const isSame =
      state === this.#state &&
      endedMs === this.#endedMs &&
      renewedMs === this.#renewedMs &&
      expiresMs === this.#expiresMs &&
      renewals === this.#renewals;
    if (nonce.length > HEADER_LENGTH)
      return stateText(state, endedMs, renewedMs, expiresMs, `${renewals} ${nonce}`);
    if (isSame) return this.#text;
    this.#state = state;
    this.#endedMs = endedMs;
    this.#renewedMs = renewedMs;
    this.#expiresMs = expiresMs;
    this.#renewals = renewals;
    this.#text = stateText(state, endedMs, renewedMs, expiresMs, String(renewals));
    return this.#text;
  }
}

/** Two, because records come and go in turns. */
const ofHeld = new StateText();
const ofEnded = new StateText();

function stateText(
  state: LeaseState,
  endedMs: number | null,
  renewedMs: number,
  expiresMs: number,
  rest: string,
): string {
  const text = ` ${state} ${endedMs ?? NEVER} ${renewedMs} ${expiresMs} ${rest}`;
  return text + (SPACES[STATE_WIDTH - HEADER_LENGTH - text.length] ?? "");
}

let lastGrantedAtMs = -1;
let lastGrantedText = "";

/** How the grant line begins, with the line break before it: for all grants of a millisecond the same. */
function grantedText(grantedAtMs: number): string {
  if (grantedAtMs !== lastGrantedAtMs) {
    lastGrantedAtMs = grantedAtMs;
    lastGrantedText = `\n${grantedAtMs} `;
  }
  return lastGrantedText;
}

function restOf(record: LeaseRecord): string {
  const { key, idempotency } = record;
  return `${record.holder}\n${key.tenant}\n${key.name}\n${record.purpose}\n${record.ttlMs}\n${record.term}${demandsOf(
    record,
  )}${idempotency === null ? "\n\n\n\n" : textOf(idempotency)}${record.note}`;
}

/** The lines between the term and the idempotency mark. */
function demandsOf({ resumeRequired, breakAtMs, handoff }: LeaseRecord): string {
  if (!resumeRequired && breakAtMs === null && handoff === null) return "\n0\n\n\n\n";
  return `\n${resumeRequired ? 1 : 0}\n${breakAtMs ?? ""}\n${handoff?.successor ?? ""}\n${handoff?.deadlineMs ?? ""}\n`;
}

/** The lines of the idempotency mark. */
function textOf({ op, keyHash, fingerprint, sealedToken }: IdempotencyMark): string {
  return `${op}\n${keyHash}\n${fingerprint}\n${sealedToken}\n`;
}

/** The holder in a value, or in whatever stands there if it is damaged. */
export function holderIn(value: string): string {
  let at = 0;
  for (let line = 0; line < HOLDER_LINE; line += 1) at = value.indexOf("\n", at) + 1;
  return value.slice(at, value.indexOf("\n", at));
}

export type DecodedValue =
  | { readonly ok: true; readonly record: LeaseRecord }
  | { readonly ok: false; readonly detail: string };

/** Never throws. `key` is where the value was found: a record that names another key is damage, too. */
export function decodeValue(value: string, key: LeaseKey): DecodedValue {
  const lines = value.split("\n");
  if (lines.length !== LINE_COUNT) return damaged(`it has ${lines.length} of ${LINE_COUNT} lines`);
  const [state = "", grant = "", ...rest] = lines;
  const length = lines[LINE_COUNT - 1] ?? "";
  if (length !== String(value.length - length.length)) return damaged("its length is not what it says");
  if (rest[1] !== key.tenant || rest[2] !== key.name) return damaged("it belongs to another key");
  try {
    return { ok: true, record: recordFrom(state, grant, rest, key) };
  } catch (error) {
    return damaged(error instanceof Error ? error.message : String(error));
  }
}

function damaged(detail: string): DecodedValue {
  return { ok: false, detail };
}

function recordFrom(
  stateText: string,
  grantText: string,
  rest: readonly string[],
  key: LeaseKey,
): LeaseRecord {
  const header = stateText.slice(0, HEADER_LENGTH);
  const [before, state = "", ended = "", renewed = "", expires = "", renewals = "", long, ...more] = stateText
    .slice(HEADER_LENGTH)
    .trimEnd()
    .split(" ");
  const [granted = "", generation = "", tokenHash = "", ...others] = grantText.trimEnd().split(" ");
  if (before !== "" || more.length > 0 || others.length > 0)
    throw new Error("its first lines do not have the fields that they should have");
  const nonce = long ?? header.trimEnd();
  if (headerOf(nonce) !== header) throw new Error("its header belongs to another write");
  const at = (line: number): string => rest[line] ?? "";
  const purpose = at(3);
  if (!isPurpose(purpose)) throw new Error(`its purpose '${purpose}' is unknown`);
  const grantedAtMs = wholeNumber("grantedAtMs", granted);
  const renewedAtMs = later("renewedAtMs", grantedAtMs, renewed);
  return {
    key,
    holder: at(0),
    purpose,
    tokenHash,
    term: BigInt(digits("term", at(5))),
    generation: BigInt(digits("generation", generation)),
    ttlMs: wholeNumber("ttlMs", at(4)),
    grantedAtMs,
    renewedAtMs,
    expiresAtMs: later("expiresAtMs", renewedAtMs, expires),
    endedAtMs: ended === NEVER ? null : later("endedAtMs", grantedAtMs, ended),
    state: stateFrom(state),
    renewals: wholeNumber("renewals", renewals),
    resumeRequired: at(6) === "1",
    breakAtMs: at(7) === "" ? null : wholeNumber("breakAtMs", at(7)),
    handoff: at(9) === "" ? null : { successor: at(8), deadlineMs: wholeNumber("deadlineMs", at(9)) },
    nonce,
    idempotency:
      at(10) === "" ? null : { op: at(10), keyHash: at(11), fingerprint: at(12), sealedToken: at(13) },
    note: at(14),
  };
}

function stateFrom(text: string): LeaseState {
  if (text === "held" || text === "released" || text === "revoked") return text;
  throw new Error(`its state '${text}' is unknown`);
}

function digits(name: string, text: string): string {
  if (!WHOLE_NUMBER.test(text)) throw new Error(`its ${name} '${text}' is not a whole number`);
  return text;
}

function wholeNumber(name: string, text: string): number {
  return safe(name, Number(digits(name, text)));
}

/** A time that is told by its distance from another. */
function later(name: string, fromMs: number, offset: string): number {
  if (!OFFSET.test(offset)) throw new Error(`its ${name} '${offset}' is not a whole number`);
  return safe(name, fromMs + Number(offset));
}

function safe(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`its ${name} '${value}' is out of range`);
  return value;
}
