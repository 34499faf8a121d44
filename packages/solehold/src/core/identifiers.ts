/**
 * What a name may look like. One rule for every string that a person chooses, so that no store, log or
 * terminal has to wonder: printable Unicode in normal form, no control, format or surrogate characters,
 * no white space at the ends, bounded length.
 */

const PLAIN_ASCII = /^[\x20-\x7e]+$/;
const SPACE = 0x20;
/** \p{DI} and the blank Braille pattern draw nothing: a holder of that name would look like no holder. */
const FORBIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{DI}\u2800]/u;
const WHITE_ENDS = /^\s|\s$/u;
/** By character code: every command carries such strings, and a table takes a fraction of the time of a pattern. */
const TOKEN_ALPHABET = Array.from({ length: 128 }, (_, code) => /[\w\-:./]/.test(String.fromCharCode(code)));

/** Null when `value` is a good name of 1 to `maxLength` UTF-16 units; otherwise what is wrong with it. */
export function nameProblem(value: unknown, maxLength: number): string | null {
  if (typeof value !== "string") return `must be a string, got ${describeType(value)}`;
  if (value.length === 0) return "must not be empty";
  if (value.length > maxLength) return `must have at most ${maxLength} characters, got ${value.length}`;
  if (
    PLAIN_ASCII.test(value) &&
    value.charCodeAt(0) !== SPACE &&
    value.charCodeAt(value.length - 1) !== SPACE
  ) {
    return null;
  }
  if (FORBIDDEN.test(value)) return "must not contain control, invisible or unpaired surrogate characters";
  if (WHITE_ENDS.test(value)) return "must not begin or end with white space";
  if (value.normalize("NFC") !== value)
    return 'must be in Unicode normal form C: call .normalize("NFC") on it';
  return null;
}

/** Null when `value` uses the token alphabet A-Z a-z 0-9 _ - : . / and has 1 to `maxLength` characters. */
export function tokenProblem(value: unknown, maxLength: number): string | null {
  if (typeof value !== "string") return `must be a string, got ${describeType(value)}`;
  if (value.length === 0) return "must not be empty";
  if (value.length > maxLength) return `must have at most ${maxLength} characters, got ${value.length}`;
  const { length } = value;
  for (let index = 0; index < length; index += 1)
    if (TOKEN_ALPHABET[codeAt(value, index)] !== true)
      return "may only contain letters, digits and _ - : . /";
  return null;
}

/** Free text for people: like a name, but it may be empty. */
export function noteProblem(value: unknown, maxLength: number): string | null {
  return value === "" ? null : nameProblem(value, maxLength);
}

export function describeType(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : typeof value;
}

/** A number as it is, and anything else by its type: the text "3" would look like one. */
export function describeNumber(value: unknown): string {
  return typeof value === "number" ? String(value) : describeType(value);
}

/** Equal, in time that depends on the lengths only: a stored hash must not be guessed byte by byte. */
export function equalInConstantTime(a: string, b: string): boolean {
  const { length } = a;
  if (length !== b.length) return false;
  let difference = 0;
  for (let index = 0; index < length; index += 1) difference |= codeAt(a, index) ^ codeAt(b, index);
  return difference === 0;
}

/**
 * As `text.charCodeAt`, by its full name: V8 has many kinds of strings, and where it has seen most of them it looks the
 * method up anew for each character. In loops over tokens and hashes that took a fifth of the time of an acquire.
 */
export function codeAt(text: string, index: number): number {
  return String.prototype.charCodeAt.call(text, index);
}

/** Stands where a token's hash would, in records that nobody can own: no token hashes to it. */
export const NO_TOKEN_HASH = "-------------------------------------------";
