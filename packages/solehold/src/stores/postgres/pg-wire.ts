/**
 * One execution of a prepared statement as the bytes of the protocol: bind, execute, sync, in one piece.
 *
 * The library's own way sends five messages (it also asks for the columns each time, which are known here)
 * and builds each in a buffer of its own. For a statement of a few microseconds that is most of the client's
 * work.
 *
 * Nearly all values are short and plain ASCII. Then the message is one text with a character for each byte, which is
 * written as it is: no buffer, and one step into the runtime instead of one for each value.
 */

const BIND = 0x42;
/** All rows of the unnamed portal, then the end of the implicit transaction. */
const EXECUTE_AND_SYNC = Buffer.from("45000000090000000000" + "5300000004", "hex");
/** Kind and length of the message, and what surrounds name and values. */
const FIXED_BYTES = 32;
/** A value's length; a code unit of UTF-16 takes at most three bytes of UTF-8. */
const LENGTH_BYTES = 4;
const BYTES_PER_UNIT = 3;

/** A value's length as four characters, for values so short that each is ASCII. */
const SHORT_LENGTHS = Array.from({ length: 0x80 }, (_, length) => `\0\0\0${String.fromCharCode(length)}`);
const NULL_LENGTH = "\xff\xff\xff\xff";
const END_TEXT = EXECUTE_AND_SYNC.toString("latin1");

/** As `boundStatement`, a character for each byte; null for values that are long or not ASCII. */
export function boundText(name: string, values: readonly (string | null)[]): string | null {
  let body = "";
  let nulls = 0;
  for (const value of values) {
    if (value === null) {
      nulls += 1;
      body += NULL_LENGTH;
    } else {
      const length = SHORT_LENGTHS[value.length];
      if (length === undefined) return null;
      body += length + value;
    }
  }
  // In UTF-8 a character of the four that stand for null takes one byte more, and so does any that is not ASCII.
  if (Buffer.byteLength(body) !== body.length + nulls * NULL_LENGTH.length) return null;
  const count = values.length;
  const message = `\0${name}\0\0\0${String.fromCharCode(count >>> 8, count & 0xff)}${body}\0\0`;
  const size = LENGTH_BYTES + message.length;
  const sizeText = String.fromCharCode(size >>> 24, (size >>> 16) & 0xff, (size >>> 8) & 0xff, size & 0xff);
  return `B${sizeText}${message}${END_TEXT}`;
}

/** Parameters and columns travel as text. */
export function boundStatement(name: string, values: readonly (string | null)[]): Uint8Array {
  const bytes = Buffer.allocUnsafe(largestSize(name, values));
  bytes[0] = BIND;
  // The unnamed portal, the statement, no list of formats: all are text.
  bytes[5] = 0;
  let end = 6;
  end += bytes.write(name, end);
  bytes[end] = 0;
  end = bytes.writeUInt16BE(0, end + 1);
  end = bytes.writeUInt16BE(values.length, end);
  for (const value of values) {
    const length = value === null ? 0 : bytes.write(value, end + LENGTH_BYTES);
    bytes.writeInt32BE(value === null ? -1 : length, end);
    end += LENGTH_BYTES + length;
  }
  end = bytes.writeUInt16BE(0, end);
  bytes.writeInt32BE(end - 1, 1);
  end += EXECUTE_AND_SYNC.copy(bytes, end);
  return bytes.subarray(0, end);
}

function largestSize(name: string, values: readonly (string | null)[]): number {
  let size = FIXED_BYTES + name.length;
  for (const value of values) size += LENGTH_BYTES + (value === null ? 0 : value.length * BYTES_PER_UNIT);
  return size;
}
