/** What metadata may look like: few, short entries, so that a record stays small in every store. */
import { describeType, noteProblem } from "./identifiers.ts";

export const MAX_METADATA_ENTRIES = 16;
export const MAX_METADATA_VALUE_LENGTH = 256;
export const MAX_METADATA_LENGTH = 2_048;

const NAME = /^[A-Za-z0-9._/-]{1,64}$/;
const NAME_RULE = "must have 1 to 64 letters, digits, '.', '_', '/' or '-'";

/** Null when `value` is good metadata; otherwise what is wrong with it. */
export function metadataProblem(value: unknown): string | null {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return `must be an object of strings, got ${describeType(value)}`;
  const entries = Object.entries(value);
  if (entries.length > MAX_METADATA_ENTRIES)
    return `must have at most ${MAX_METADATA_ENTRIES} entries, got ${entries.length}`;
  let length = 0;
  for (const [name, text] of entries) {
    if (!NAME.test(name)) return `has the name ${JSON.stringify(name.slice(0, 80))}, which ${NAME_RULE}`;
    const problem = noteProblem(text, MAX_METADATA_VALUE_LENGTH);
    if (problem !== null) return `has the entry '${name}', which ${problem}`;
    length += name.length + (text as string).length;
  }
  return length <= MAX_METADATA_LENGTH
    ? null
    : `must have at most ${MAX_METADATA_LENGTH} characters in all, got ${length}`;
}
