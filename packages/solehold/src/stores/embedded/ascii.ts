/** Texts as bytes, written straight into memory where they are ASCII: no buffer comes into being. */

const LAST_ASCII = 0x7f;

/** Returns how many characters were written: all, or those before the first that is not ASCII. */
export function writeAscii(text: string, target: Uint8Array, start: number): number {
  const { length } = text;
  for (let index = 0; index < length; index += 1) {
    const unit = unitAt(text, index);
    if (unit > LAST_ASCII) return index;
    target[start + index] = unit;
  }
  return length;
}

/**
 * As `text.charCodeAt`, by its full name: V8 has many kinds of strings, and where it has seen most of them it looks the
 * method up anew for each character.
 */
export function unitAt(text: string, index: number): number {
  return String.prototype.charCodeAt.call(text, index);
}
