/**
 * A record as a value of the database: the epoch whose clock it was judged by, then core's text. The
 * database puts the version in front, so a conditional write compares eight bytes and decodes nothing.
 */
import { type DecodedRecord, decodeRecord, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import { ByteLines } from "./byte-lines.ts";
import type { StoreClock } from "./clock.ts";

const HEADER = /^E(\d{1,10})\.([0-9a-f]{8})\n/;

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

  constructor(clock: StoreClock) {
    this.#clock = clock;
    this.#header = epochHeader(clock.epoch);
    this.#headerBytes = Buffer.from(this.#header);
  }

  encode(record: LeaseRecord): Uint8Array {
    return this.#lines.encode(this.#headerBytes, record);
  }

  /** Never throws. The record's instants are in terms of the current epoch. */
  decode(text: string, key: LeaseKey): DecodedRecord {
    if (text.startsWith(this.#header)) return decodeRecord(text.slice(this.#header.length), key);
    const [header = "", digits = ""] = HEADER.exec(text) ?? [];
    const epoch = Number(digits);
    if (header === "" || header !== epochHeader(epoch) || epoch < 1 || epoch > this.#clock.epoch)
      return { ok: false, detail: "it does not begin with an epoch of this store" };
    const decoded = decodeRecord(text.slice(header.length), key);
    return decoded.ok ? { ok: true, record: this.#clock.translate(decoded.record, epoch) } : decoded;
  }
}
