/**
 * Whether JSON text is nested deeper than anything that a caller has to send. It is asked before parsing: what is nested a
 * million times takes seconds to parse, and everybody waits.
 */
export const MAX_JSON_DEPTH = 16;

/** Shorter text is parsed in a moment however it is nested, and most is shorter. */
const HARMLESS_LENGTH = 16_384;

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [BRACKET, CLOSING_BRACKET, BRACE, CLOSING_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

export function isTooDeep(text: string): boolean {
  if (text.length <= HARMLESS_LENGTH) return false;
  let depth = 0;
  let isInString = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (isInString) {
      if (code === BACKSLASH) index += 1;
      else if (code === QUOTE) isInString = false;
    } else if (code === QUOTE) {
      isInString = true;
    } else if (code === BRACKET || code === BRACE) {
      depth += 1;
      if (depth > MAX_JSON_DEPTH) return true;
    } else if (code === CLOSING_BRACKET || code === CLOSING_BRACE) {
      depth -= 1;
    }
  }
  return false;
}
