/**
 * What an identifier may look like in this layer, and how two are ordered.
 *
 * An id (node, signer, trace) has 1 to 256 bytes of UTF-8 and no white space at all. A name (lease, key,
 * holder, ...) may have inner spaces and its own limit. Both exclude control characters (NUL among them),
 * invisible format characters, private use and unpaired surrogates: the first would let one log line pose
 * as two, the second would let a person approve something other than what the screen shows, and the last
 * have no UTF-8 encoding, so two different ids would hash alike.
 *
 * Not promised: Unicode normalisation. Ids are compared by their bytes.
 */
import { describeType } from "../core/index.ts";

export const MAX_ID_BYTES = 256;
export const MAX_LEASE_ID_BYTES = 1024;

const PLAIN_ID = /^[\x21-\x7e]+$/;
const PLAIN_NAME = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const FORBIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;
const WHITE_SPACE = /\s/u;
const WHITE_ENDS = /^\s|\s$/u;
const MAX_SHOWN_CHARACTERS = 48;

/** Null for a good id of a node, a signer or a trace; otherwise what is wrong with it. */
export function idProblem(value: unknown): string | null {
  if (typeof value === "string" && value.length <= MAX_ID_BYTES && PLAIN_ID.test(value)) return null;
  const problem = nameProblem(value, MAX_ID_BYTES);
  if (problem !== null) return problem;
  return WHITE_SPACE.test(value as string) ? `must not contain white space, got ${shown(value)}` : null;
}

/** Null for a good name of 1 to `maxBytes` bytes of UTF-8; otherwise what is wrong with it. */
export function nameProblem(value: unknown, maxBytes: number): string | null {
  if (typeof value !== "string") return `must be a string, got ${shown(value)}`;
  if (value.length === 0) return "must not be empty";
  if (value.length > maxBytes)
    return `must have at most ${maxBytes} bytes of UTF-8, got ${byteLength(value)}`;
  if (PLAIN_NAME.test(value)) return null;
  if (FORBIDDEN.test(value)) {
    return `must not contain control, invisible, private-use or unpaired surrogate characters, got ${shown(value)}`;
  }
  if (WHITE_ENDS.test(value)) return `must not begin or end with white space, got ${shown(value)}`;
  const bytes = byteLength(value);
  return bytes > maxBytes ? `must have at most ${maxBytes} bytes of UTF-8, got ${bytes}` : null;
}

/** A value as it may stand in a message: quoted, in printable ASCII, short. */
export function shown(value: unknown): string {
  if (typeof value === "bigint") return `${shorten(String(value))}n`;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" ? `"${shorten(escaped(value))}"` : describeType(value);
}

/** The id itself when it is a good one; otherwise a printable stand-in that can equal no good id. */
export function printableId(value: unknown): string {
  return idProblem(value) === null ? (value as string) : `(not an id: ${shown(value)})`;
}

/**
 * Orders two well-formed strings as their UTF-8 bytes would be ordered, without encoding them. UTF-16 units
 * compare like UTF-8 except that surrogates, which stand for the highest code points, lie below U+E000.
 */
export function compareUtf8(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let index = 0; index < shared; index += 1) {
    const unitA = a.charCodeAt(index);
    const unitB = b.charCodeAt(index);
    if (unitA !== unitB) return codePointRank(unitA) - codePointRank(unitB);
  }
  return a.length - b.length;
}

function codePointRank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

function byteLength(value: string): number {
  return Buffer.byteLength(value, "utf8");
}

function shorten(text: string): string {
  return text.length <= MAX_SHOWN_CHARACTERS ? text : `${text.slice(0, MAX_SHOWN_CHARACTERS)}...`;
}

function escaped(value: string): string {
  return value
    .slice(0, MAX_SHOWN_CHARACTERS + 1)
    .replace(/[^\x20-\x7e]|["\\]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
