/** Texts in the forms that PostgreSQL reads and compares. */

const SPECIAL = /["\\]/g;
const LAST_CODE_POINT = 0x10ffff;
const FIRST_SURROGATE = 0xd800;
const AFTER_SURROGATES = 0xe000;

/** An array: `{"a","b",NULL}`. One text a column is cheaper than a client's own array code. */
export function arrayLiteral(values: readonly (string | null)[]): string {
  let literal = "{";
  for (const [index, value] of values.entries()) {
    if (index > 0) literal += ",";
    literal += value === null ? "NULL" : `"${value.replace(SPECIAL, "\\$&")}"`;
  }
  return `${literal}}`;
}

/** One array literal a column, from rows of equal length. */
export function columnLiterals(rows: readonly (readonly (string | null)[])[]): string[] {
  const width = rows[0]?.length ?? 0;
  return Array.from({ length: width }, (_, column) => arrayLiteral(rows.map((row) => row[column] ?? null)));
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
