/**
 * Records as bytes: what `encodeRecord` of the core makes, in UTF-8, written straight into memory. It costs
 * a third of making the text first, because no strings come into being, and the checksum is made on the way.
 *
 * The bytes of a record stay where they are for as long as somebody has them: the database's thread reads
 * them later. So space is never used again; a block that is full is left to those who still need it.
 */
import { codeAt, type LeaseRecord, type RecordLines, writeLines } from "../../core/index.ts";
import { writeDecimal } from "../support/decimal.ts";

const BLOCK_BYTES = 2 ** 16;
const LINE_BREAK = 0x0a;
const LAST_ASCII = 0x7f;
/** UTF-8 needs no more for a UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3;
/** Of a number, a checksum or a line break, each of which is shorter. */
const ROOM_FOR_OTHERS = 64;
const HEX_DIGITS = Uint8Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));
const HEX_BITS = 4;
const CHECKSUM_BITS = 32;

/** FNV-1a, as core's codec defines it. */
const CHECKSUM_START = 0x811c9dc5;
const CHECKSUM_FACTOR = 0x01000193;

export class ByteLines implements RecordLines {
  #block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  /** Where the record at hand begins. */
  #start = 0;
  #end = 0;
  #checksum = 0;

  /** `header` goes before the record, and is not part of its checksum. */
  encode(header: Uint8Array, record: LeaseRecord): Uint8Array {
    this.#start = this.#end;
    this.#makeRoom(header.length);
    this.#block.set(header, this.#start);
    this.#end = this.#start + header.length;
    this.#checksum = CHECKSUM_START;
    writeLines(record, this);
    this.#writeChecksum();
    return new Uint8Array(this.#block.buffer, this.#start, this.#end - this.#start);
  }

  text(line: string): void {
    this.#makeRoom(line.length * MAX_BYTES_PER_UNIT);
    const block = this.#block;
    let end = this.#end;
    let checksum = this.#checksum;
    const { length } = line;
    for (let index = 0; index < length; index += 1) {
      const unit = codeAt(line, index);
      if (unit > LAST_ASCII) {
        this.#end = end;
        this.#checksum = checksum;
        this.#writeWideText(line.slice(index));
        return;
      }
      checksum = Math.imul(checksum ^ unit, CHECKSUM_FACTOR);
      block[end] = unit;
      end += 1;
    }
    block[end] = LINE_BREAK;
    this.#end = end + 1;
    this.#checksum = Math.imul(checksum ^ LINE_BREAK, CHECKSUM_FACTOR);
  }

  number(line: number): void {
    if (!Number.isSafeInteger(line) || line < 0) {
      this.text(String(line));
      return;
    }
    this.#makeRoom(0);
    const block = this.#block;
    const end = writeDecimal(line, block, this.#end);
    let checksum = this.#checksum;
    for (let index = this.#end; index < end; index += 1) {
      checksum = Math.imul(checksum ^ (block[index] ?? 0), CHECKSUM_FACTOR);
    }
    this.#checksum = checksum;
    this.#end = end;
    this.#writeLineBreak();
  }

  bigint(line: bigint): void {
    const number = Number(line);
    if (Number.isSafeInteger(number)) this.number(number);
    else this.text(String(line));
  }

  #writeWideText(line: string): void {
    for (let index = 0; index < line.length; index += 1) {
      this.#checksum = Math.imul(this.#checksum ^ codeAt(line, index), CHECKSUM_FACTOR);
    }
    this.#end += this.#block.write(line, this.#end);
    this.#writeLineBreak();
  }

  #writeLineBreak(): void {
    this.#block[this.#end] = LINE_BREAK;
    this.#end += 1;
    this.#checksum = Math.imul(this.#checksum ^ LINE_BREAK, CHECKSUM_FACTOR);
  }

  #writeChecksum(): void {
    this.#makeRoom(0);
    for (let shift = CHECKSUM_BITS - HEX_BITS; shift >= 0; shift -= HEX_BITS) {
      this.#block[this.#end] = HEX_DIGITS[(this.#checksum >>> shift) & 0xf] ?? 0;
      this.#end += 1;
    }
  }

  /** A new block when the old one is full; what there is of the record at hand moves to it. */
  #makeRoom(bytes: number): void {
    if (this.#end + bytes + ROOM_FOR_OTHERS <= this.#block.length) return;
    const begun = this.#block.subarray(this.#start, this.#end);
    this.#block = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, 2 * (begun.length + bytes + ROOM_FOR_OTHERS)));
    this.#block.set(begun);
    this.#start = 0;
    this.#end = begun.length;
  }
}
