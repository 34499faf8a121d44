/** Whole numbers as decimal digits, written straight into memory: no text comes into being. */

const ZERO = 0x30;
/** A larger number is written in two pieces, which both fit 32 bits: the fastest numbers there are. */
const LARGEST_PIECE = 2 ** 31 - 1;
const LOW_PIECE = 1e8;
const LOW_DIGITS = 8;

/** A safe integer that is not below zero. Returns where it ends: after 16 digits at most, for which there must be room. */
export function writeDecimal(number: number, target: Uint8Array, start: number): number {
  return writeDigits(number, digitCount(number), target, start);
}

/** The same with so many digits, no fewer than it has: zeros stand in front. */
export function writeDigits(number: number, count: number, target: Uint8Array, start: number): number {
  if (number <= LARGEST_PIECE) return writePiece(number, count, target, start);
  const high = Math.floor(number / LOW_PIECE);
  const middle = writePiece(high, count - LOW_DIGITS, target, start);
  return writePiece(number - high * LOW_PIECE, LOW_DIGITS, target, middle);
}

function writePiece(number: number, count: number, target: Uint8Array, start: number): number {
  let rest = number | 0;
  for (let index = start + count - 1; index >= start; index -= 1) {
    const tenth = (rest / 10) | 0;
    target[index] = ZERO + rest - tenth * 10;
    rest = tenth;
  }
  return start + count;
}

function digitCount(number: number): number {
  const isLarge = number > LARGEST_PIECE;
  let count = isLarge ? LOW_DIGITS + 1 : 1;
  let rest = ((isLarge ? Math.floor(number / LOW_PIECE) : number) / 10) | 0;
  for (; rest > 0; rest = (rest / 10) | 0) count += 1;
  return count;
}
