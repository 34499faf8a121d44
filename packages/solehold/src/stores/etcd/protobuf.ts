/**
 * As much of the protocol buffers wire format as etcd's messages need: variable-length numbers and
 * length-delimited fields. Fields that are not known are skipped, as the format wants it; bytes that are not
 * a message are refused with a ProtocolError, never half-read.
 */

/** What came over the wire is not a message. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";

  constructor(detail: string) {
    super(`not a message of etcd: ${detail}`);
  }
}

const VARINT = 0;
const FIXED_64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED_32 = 5;

const MAX_VARINT_BYTES = 10;
const MAX_SMALL = 0x7fffffffn;
/** Up to 49 bits are exact in a double: nearly all numbers are within. */
const EXACT_BYTES = 7;
const EMPTY = new Uint8Array(0);

/** A number as a field. Negative ones travel as 64-bit two's complement. */
export function numberField(field: number, value: bigint): Buffer {
  const unsigned = BigInt.asUintN(64, value);
  const tag = field << 3;
  const bytes = Buffer.allocUnsafe(sizeOf(tag) + MAX_VARINT_BYTES);
  let end = writeSmall(bytes, 0, tag);
  if (unsigned <= MAX_SMALL) return bytes.subarray(0, writeSmall(bytes, end, Number(unsigned)));
  let rest = unsigned;
  for (; rest >= 0x80n; rest >>= 7n) {
    bytes[end] = Number(rest & 0x7fn) | 0x80;
    end += 1;
  }
  bytes[end] = Number(rest);
  return bytes.subarray(0, end + 1);
}

/** Text, bytes, or a message that is already encoded. */
export function bytesField(field: number, value: Uint8Array | string): Buffer {
  const tag = (field << 3) | LENGTH_DELIMITED;
  const length = typeof value === "string" ? Buffer.byteLength(value) : value.length;
  const bytes = Buffer.allocUnsafe(sizeOf(tag) + sizeOf(length) + length);
  const start = writeSmall(bytes, writeSmall(bytes, 0, tag), length);
  if (typeof value === "string") bytes.write(value, start);
  else bytes.set(value, start);
  return bytes;
}

/** For values below 2^31, as the next two. */
function sizeOf(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest >>>= 7) size += 1;
  return size;
}

/** Returns where it ends. */
function writeSmall(bytes: Buffer, start: number, value: number): number {
  let end = start;
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) {
    bytes[end] = (rest & 0x7f) | 0x80;
    end += 1;
  }
  bytes[end] = rest;
  return end + 1;
}

/** Walks over the fields of one message: `while (reader.next()) switch (reader.field) { ... }`. */
export class MessageReader {
  readonly #bytes: Uint8Array;
  #position = 0;
  #field = 0;
  #wireType = VARINT;
  #number: number | bigint = 0;
  #content: Uint8Array = EMPTY;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get field(): number {
    return this.#field;
  }

  /** Moves to the next field; false at the end of the message. */
  next(): boolean {
    if (this.#position === this.#bytes.length) return false;
    const tag = this.#smallVarint();
    this.#field = tag >>> 3;
    this.#wireType = tag & 7;
    if (this.#field === 0) throw new ProtocolError("a field has the number 0");
    switch (this.#wireType) {
      case VARINT:
        this.#number = this.#varint();
        return true;
      case LENGTH_DELIMITED:
        this.#content = this.#take(this.#smallVarint());
        return true;
      case FIXED_64:
        this.#take(8);
        return true;
      case FIXED_32:
        this.#take(4);
        return true;
      default:
        throw new ProtocolError(`field ${this.#field} has the unknown wire type ${this.#wireType}`);
    }
  }

  /** Of a field that is declared as uint64. */
  unsigned(): bigint {
    return BigInt(this.#anyNumber());
  }

  /** Of a field that is declared as int64. */
  signed(): bigint {
    return BigInt.asIntN(64, this.unsigned());
  }

  flag(): boolean {
    return Number(this.#anyNumber()) !== 0;
  }

  /** Shares its memory with the message. */
  bytes(): Uint8Array {
    if (this.#wireType !== LENGTH_DELIMITED) throw new ProtocolError(`field ${this.#field} is not bytes`);
    return this.#content;
  }

  text(): string {
    return textOf(this.bytes());
  }

  #anyNumber(): number | bigint {
    if (this.#wireType !== VARINT) throw new ProtocolError(`field ${this.#field} is not a number`);
    return this.#number;
  }

  #take(length: number): Uint8Array {
    const end = this.#position + length;
    if (end > this.#bytes.length) throw new ProtocolError(`field ${this.#field} is cut off`);
    const taken = this.#bytes.subarray(this.#position, end);
    this.#position = end;
    return taken;
  }

  #byte(): number {
    const byte = this.#bytes[this.#position];
    if (byte === undefined) throw new ProtocolError("a number is cut off");
    this.#position += 1;
    return byte;
  }

  /** Of tags and lengths. */
  #smallVarint(): number {
    const value = this.#varint();
    if (value > 0x7fffffff) throw new ProtocolError(`a tag or length of ${value} is too large`);
    return Number(value);
  }

  #varint(): number | bigint {
    let low = 0;
    let unit = 1;
    for (let index = 0; index < EXACT_BYTES; index += 1) {
      const byte = this.#byte();
      low += (byte & 0x7f) * unit;
      if (byte < 0x80) return low;
      unit *= 0x80;
    }
    let value = BigInt(low);
    for (let index = EXACT_BYTES; index < MAX_VARINT_BYTES; index += 1) {
      const byte = this.#byte();
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte < 0x80) {
        if (value >= 2n ** 64n) throw new ProtocolError("a number has more than 64 bits");
        return value;
      }
    }
    throw new ProtocolError("a number has more than 10 bytes");
  }
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}
