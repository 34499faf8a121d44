/** Texts as bytes, written straight into memory where they are ASCII: no buffer comes into being. */
import { codeAt } from "../../core/index.ts";

const LAST_ASCII = 0x7f;

/** Returns how many characters were written: all, or those before the first that is not ASCII. */
export function writeAscii(text: string, target: Uint8Array, start: number): number {
  const { length } = text;
  for (let index = 0; index < length; index += 1) {
    const unit = codeAt(text, index);
    if (unit > LAST_ASCII) return index;
    target[start + index] = unit;
  }
  return length;
}
