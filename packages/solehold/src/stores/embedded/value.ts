/**
 * A record as a value of the database, with the epoch whose clock it was judged by: in its short form, or where it has none
 * as the epoch and then core's text, as all records were before there was a short form. The database puts the version in
 * front, so a conditional write compares eight bytes and decodes nothing.
 */
import { type DecodedRecord, decodeRecord, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import { ByteLines } from "./byte-lines.ts";
import type { StoreClock } from "./clock.ts";
import { decodeShort, SHORT_FORM, ShortForm } from "./short-form.ts";

const HEADER = /^E(\d{1,10})\.([0-9a-f]{8})\n/;

const NO_EPOCH: DecodedRecord = Object.freeze({
  ok: false,
  detail: "it does not begin with an epoch of this store",
});

/** The epoch is outside of the record's own checksum, so it brings its own. */
export function epochHeader(epoch: number): string {
  const check = (Math.imul(epoch, 0x9e3779b1) ^ 0x5bf03635) >>> 0;
  return `E${epoch}.${check.toString(16).padStart(8, "0")}\n`;
}

export class ValueCodec {
  readonly #clock: StoreClock;
  readonly #header: string;
  readonly #headerBytes: Uint8Array;
  readonly #lines = new ByteLines();
  readonly #short = new ShortForm();

  constructor(clock: StoreClock) {
    this.#clock = clock;
    this.#header = epochHeader(clock.epoch);
    this.#headerBytes = Buffer.from(this.#header);
  }

  encode(record: LeaseRecord): Uint8Array {
    return this.#short.encode(this.#clock.epoch, record) ?? this.#lines.encode(this.#headerBytes, record);
  }

  /** Never throws. The record's instants are in terms of the current epoch. */
  decode(text: string, key: LeaseKey): DecodedRecord {
    if (text.startsWith(SHORT_FORM)) return this.#decodeShort(text, key);
    if (text.startsWith(this.#header)) return decodeRecord(text.slice(this.#header.length), key);
    const [header = "", digits = ""] = HEADER.exec(text) ?? [];
    const epoch = Number(digits);
    if (header === "" || header !== epochHeader(epoch) || !this.#isKnown(epoch)) return NO_EPOCH;
    const decoded = decodeRecord(text.slice(header.length), key);
    return decoded.ok ? { ok: true, record: this.#clock.translate(decoded.record, epoch) } : decoded;
  }

  #decodeShort(text: string, key: LeaseKey): DecodedRecord {
    const decoded = decodeShort(text, key);
    if (typeof decoded === "string") return { ok: false, detail: decoded };
    const { record, epoch } = decoded;
    return this.#isKnown(epoch) ? { ok: true, record: this.#clock.translate(record, epoch) } : NO_EPOCH;
  }

  #isKnown(epoch: number): boolean {
    return epoch >= 1 && epoch <= this.#clock.epoch;
  }
}
