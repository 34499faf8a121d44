/**
 * Texts in the forms that PostgreSQL reads and compares.
 *
 * A row travels as one text in both directions, its fields divided by line breaks: quicker to write, to
 * send and to read than a dozen columns. No text of a record contains a control character.
 */

const SPECIAL = /["\\]/g;
export const SEPARATOR = "\n";
export const NULL_MARK = "\t";
/** The same two in SQL. */
export const SEPARATOR_SQL = "E'\\n'";
export const NULL_MARK_SQL = "E'\\t'";
const LAST_CODE_POINT = 0x10ffff;
const FIRST_SURROGATE = 0xd800;
const AFTER_SURROGATES = 0xe000;

/** An array: `{"a","b",NULL}`. */
export function arrayLiteral(values: readonly (string | null)[]): string {
  let literal = "{";
  for (const [index, value] of values.entries()) {
    if (index > 0) literal += ",";
    literal += value === null ? "NULL" : `"${value.replace(SPECIAL, "\\$&")}"`;
  }
  return `${literal}}`;
}

/** Rows as an array of texts. */
export function rowsLiteral(rows: readonly (readonly (string | null)[])[]): string {
  return arrayLiteral(rows.map((row) => row.map((value) => value ?? NULL_MARK).join(SEPARATOR)));
}

/**
 * The order of UTF-8 bytes, which collation "C" sorts by. Code units of UTF-16 are in the same order, except
 * that surrogates (of characters above all others) come before the last of the rest.
 */
export function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const difference = rank(a.charCodeAt(index)) - rank(b.charCodeAt(index));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function rank(unit: number): number {
  return unit >= FIRST_SURROGATE && unit < AFTER_SURROGATES ? unit + LAST_CODE_POINT : unit;
}

/**
 * The names that begin with a prefix are, in byte order, those from the prefix to below this text; null when
 * there is no upper end.
 */
export function upperBound(prefix: string): string | null {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return null;
  const next = last + 1 === FIRST_SURROGATE ? AFTER_SURROGATES : last + 1;
  return String.fromCodePoint(...points, next);
}
