/**
 * A member's line as bytes: what `memberLine` makes, in ASCII, written straight into memory. Every commit has one, and with
 * one write at a time its texts would cost a tenth of all that this process does for a commit.
 *
 * The bytes of a line stay where they are for as long as somebody has them: the database's thread reads them later. So
 * space is never used again; a block that is full is left to those who still need it.
 */
import { writeDecimal } from "../support/decimal.ts";

const BLOCK_BYTES = 2 ** 14;
/** Of three numbers below 2^53, the checksum and what separates them. */
const MOST_BYTES = 64;
const SPACE = 0x20;
const ZERO = 0x30;
const LETTER_A = 0x61;
const HEX_BITS = 4;
const CHECKSUM_BITS = 32;

/** The CRC-32 of zlib, one byte at a time. */
const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit += 1) rest = (rest >>> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  return rest;
});

export class LineBytes {
  #block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #end = 0;

  encode(epoch: number, markMs: number, sequence: number): Uint8Array {
    if (this.#end + MOST_BYTES > BLOCK_BYTES) {
      this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#end = 0;
    }
    const start = this.#end;
    this.#number(epoch);
    this.#byte(SPACE);
    this.#number(markMs);
    this.#byte(SPACE);
    this.#number(sequence);
    const checksum = this.#checksumFrom(start);
    this.#byte(SPACE);
    this.#hex(checksum);
    return new Uint8Array(this.#block.buffer, start, this.#end - start);
  }

  #byte(byte: number): void {
    this.#block[this.#end] = byte;
    this.#end += 1;
  }

  #number(number: number): void {
    this.#end = writeDecimal(number, this.#block, this.#end);
  }

  #checksumFrom(start: number): number {
    let checksum = -1;
    for (let index = start; index < this.#end; index += 1) {
      checksum = (checksum >>> 8) ^ (CRC_TABLE[(checksum ^ (this.#block[index] ?? 0)) & 0xff] ?? 0);
    }
    return ~checksum;
  }

  /** Without zeros in front. */
  #hex(number: number): void {
    let shift = CHECKSUM_BITS - HEX_BITS;
    while (shift > 0 && number >>> shift === 0) shift -= HEX_BITS;
    for (; shift >= 0; shift -= HEX_BITS) {
      const digit = (number >>> shift) & 0xf;
      this.#byte(digit < 10 ? ZERO + digit : LETTER_A + digit - 10);
    }
  }
}
