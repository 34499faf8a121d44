/**
 * The short form of a record, for those that nearly all are: plain leases in ASCII, with nothing unusual about them. It takes
 * three quarters of the space of core's text and half of its time, because instants are written as what they differ from the
 * grant, what nobody set is left out, and the checksum takes four bytes at a time. A person can still read it:
 *
 *     2hO 1 0 12 30000 1750000000000 10000 30000 - 3     state and purpose, then numbers, see `encode`
 *     AbCdEfGhIjKlMnOpQrStUv                             nonce
 *     default                                            tenant
 *     orders/4711                                        name
 *     worker-1                                           holder
 *     47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU        hash of the token
 *     7c81e9ee                                           checksum of all before it
 *
 * The bytes of a record stay where they are for as long as somebody has them, as in byte-lines.ts.
 */
import { codeAt, type LeaseKey, type LeaseRecord, type LeaseState, type Purpose } from "../../core/index.ts";
import { writeDecimal } from "../support/decimal.ts";
import { writeAscii } from "./ascii.ts";

const BLOCK_BYTES = 2 ** 16;
/** Texts of a record that are longer together have no short form. */
const MOST_TEXT = 2_048;
/** Of the numbers, the checksum and what separates them. */
const ROOM_FOR_OTHERS = 256;

/** How a short form begins; core's text begins with its epoch, see value.ts. */
export const SHORT_FORM = "2";
export const SHORT_FORM_BYTE = SHORT_FORM.charCodeAt(0);
const SPACE = 0x20;
const LINE_BREAK = 0x0a;
const DASH = 0x2d;
const HEX_DIGITS = Uint8Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));
const CHECKSUM_CHARACTERS = 8;

const STATES: Readonly<Record<LeaseState, number>> = { held: 0x68, released: 0x72, revoked: 0x76 };
const PURPOSES: Readonly<Record<Purpose, number>> = {
  Operation: 0x4f,
  StateWrite: 0x53,
  MigrationHandoff: 0x4d,
};
const STATE_OF = byLetter(STATES);
const PURPOSE_OF = byLetter(PURPOSES);

const NUMBER = "(0|[1-9]\\d{0,15})";
const HEAD = new RegExp(`^2([a-z])([A-Z])${` ${NUMBER}`.repeat(7)} (?:-|${NUMBER}) ${NUMBER}$`);

export interface ShortRecord {
  readonly record: LeaseRecord;
  readonly epoch: number;
}

export class ShortForm {
  #block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #end = 0;

  /** Null when the record has none. */
  encode(epoch: number, record: LeaseRecord): Uint8Array | null {
    if (!isPlain(record) || !this.#hasRoom(record)) return null;
    const { key, grantedAtMs, renewedAtMs, endedAtMs } = record;
    const start = this.#end;
    this.#byte(SHORT_FORM_BYTE);
    this.#byte(STATES[record.state]);
    this.#byte(PURPOSES[record.purpose]);
    const isWritten =
      this.#number(epoch) &&
      this.#number(Number(record.term)) &&
      this.#number(Number(record.generation)) &&
      this.#number(record.ttlMs) &&
      this.#number(grantedAtMs) &&
      this.#number(renewedAtMs - grantedAtMs) &&
      this.#number(record.expiresAtMs - renewedAtMs) &&
      (endedAtMs === null ? this.#dash() : this.#number(endedAtMs - grantedAtMs)) &&
      this.#number(record.renewals) &&
      this.#byte(LINE_BREAK) &&
      this.#line(record.nonce) &&
      this.#line(key.tenant) &&
      this.#line(key.name) &&
      this.#line(record.holder) &&
      this.#line(record.tokenHash);
    if (!isWritten) {
      this.#end = start;
      return null;
    }
    this.#checksum(start);
    return new Uint8Array(this.#block.buffer, start, this.#end - start);
  }

  #hasRoom({ nonce, key, holder, tokenHash }: LeaseRecord): boolean {
    const text = nonce.length + key.tenant.length + key.name.length + holder.length + tokenHash.length;
    if (text > MOST_TEXT) return false;
    if (this.#end + text + ROOM_FOR_OTHERS <= BLOCK_BYTES) return true;
    this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.#end = 0;
    return true;
  }

  #byte(byte: number): true {
    this.#block[this.#end] = byte;
    this.#end += 1;
    return true;
  }

  #dash(): true {
    return this.#byte(SPACE) && this.#byte(DASH);
  }

  /** False for what is no whole number, or below zero. */
  #number(number: number): boolean {
    if (!Number.isSafeInteger(number) || number < 0) return false;
    this.#block[this.#end] = SPACE;
    this.#end = writeDecimal(number, this.#block, this.#end + 1);
    return true;
  }

  /** False for what is not all ASCII. */
  #line(text: string): boolean {
    const end = this.#end + text.length;
    if (writeAscii(text, this.#block, this.#end) < text.length) return false;
    this.#block[end] = LINE_BREAK;
    this.#end = end + 1;
    return true;
  }

  #checksum(start: number): void {
    const block = this.#block;
    const end = this.#end;
    let sum = CHECKSUM_START;
    let index = start;
    for (; index + 4 <= end; index += 4) {
      const word =
        (block[index] ?? 0) |
        ((block[index + 1] ?? 0) << 8) |
        ((block[index + 2] ?? 0) << 16) |
        ((block[index + 3] ?? 0) << 24);
      sum = mixed(sum, word);
    }
    for (; index < end; index += 1) sum = mixed(sum, block[index] ?? 0);
    for (let shift = 28; shift >= 0; shift -= 4) this.#byte(HEX_DIGITS[(sum >>> shift) & 0xf] ?? 0);
  }
}

/** Whether all that a short form has no place for is as usual, and the instants can be told by their differences. */
function isPlain(record: LeaseRecord): boolean {
  return (
    Number.isSafeInteger(record.renewedAtMs) &&
    Number.isSafeInteger(record.expiresAtMs) &&
    Number.isSafeInteger(record.endedAtMs ?? 0) &&
    record.note === "" &&
    record.idempotency === null &&
    record.handoff === null &&
    record.breakAtMs === null &&
    !record.resumeRequired
  );
}

const CHECKSUM_START = 0x811c9dc5 | 0;
const CHECKSUM_FACTOR = 0x9e3779b1 | 0;

/** For a given word another one for every sum: what differs in one place differs to the end. */
function mixed(sum: number, word: number): number {
  const product = Math.imul(sum ^ word, CHECKSUM_FACTOR);
  return product ^ (product >>> 15);
}

/** Of ASCII, which it must be; what is not gives some other sum. */
function checksumOf(text: string, end: number): string {
  let sum = CHECKSUM_START;
  let index = 0;
  for (; index + 4 <= end; index += 4) {
    const low = codeAt(text, index) | (codeAt(text, index + 1) << 8);
    const high = codeAt(text, index + 2) | (codeAt(text, index + 3) << 8);
    sum = mixed(sum, low | (high << 16));
  }
  for (; index < end; index += 1) sum = mixed(sum, codeAt(text, index));
  return (sum >>> 0).toString(16).padStart(CHECKSUM_CHARACTERS, "0");
}

/** What is wrong with it as text; never throws. `key` is where it was found. */
export function decodeShort(text: string, key: LeaseKey): ShortRecord | string {
  const end = text.length - CHECKSUM_CHARACTERS;
  if (end < 0 || text.slice(end) !== checksumOf(text, end)) return "its checksum does not fit its content";
  const [head = "", nonce = "", tenant, name, holder = "", tokenHash = "", , ...more] = text.split("\n");
  if (more.length > 0) return "it has too many lines";
  if (tenant !== key.tenant || name !== key.name) return "it belongs to another key";
  const found = HEAD.exec(head);
  const state = STATE_OF.get(found?.[1] ?? "");
  const purpose = PURPOSE_OF.get(found?.[2] ?? "");
  if (found === null || state === undefined || purpose === undefined) return `its first line is '${head}'`;
  const at = (index: number): number => Number(found[index]);
  const grantedAtMs = at(7);
  const renewedAtMs = grantedAtMs + at(8);
  const record: LeaseRecord = {
    key,
    holder,
    purpose,
    tokenHash,
    term: BigInt(at(4)),
    generation: BigInt(at(5)),
    ttlMs: at(6),
    grantedAtMs,
    renewedAtMs,
    expiresAtMs: renewedAtMs + at(9),
    endedAtMs: found[10] === undefined ? null : grantedAtMs + at(10),
    state,
    renewals: at(11),
    resumeRequired: false,
    breakAtMs: null,
    handoff: null,
    nonce,
    idempotency: null,
    note: "",
  };
  return { record, epoch: at(3) };
}

function byLetter<Name extends string>(letters: Readonly<Record<Name, number>>): ReadonlyMap<string, Name> {
  const entries = Object.entries(letters) as [Name, number][];
  return new Map(entries.map(([name, letter]) => [String.fromCharCode(letter), name]));
}
