/**
 * What a notification says: a line with one letter for each key, whether it is held, then the keys, a line
 * each, and a line with one mark for each key, by which holders and grants can be told apart. Nothing else of the
 * records, because every role may listen to every channel: a mark is too short to find a name by. How leases ended (see
 * `plain-ends.ts`) stands in a line before the marks, divided by commas.
 *
 * A line of letters, ends or marks has no slash, which every key has: who does not know them takes it for no key.
 */
import { hash } from "node:crypto";
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import type { Change } from "./news.ts";

/** The server takes payloads of less than 8000 bytes. */
const MAX_PAYLOAD_BYTES = 7_900;

export const KEY_SEPARATOR = "\n";
/** Instead of keys: too many to name, look at everything. */
export const EVERYTHING = "*";

const LETTERS = { yes: "+", no: "-", unknown: "." } as const;
const HELD: ReadonlyMap<string, Change["held"]> = new Map([
  [LETTERS.yes, "yes"],
  [LETTERS.no, "no"],
]);

const END_SEPARATOR = ",";

/** Of the holder, then of the grant. */
const HALF_MARK_LENGTH = 4;
const MARK_LENGTH = 2 * HALF_MARK_LENGTH;
/** Of a key of which is not known who holds it. */
const NO_MARK = "-".repeat(MARK_LENGTH);

/** What is announced of a key, which is named by its id. */
export interface News {
  readonly id: string;
  readonly held: Change["held"];
  /** What was written; null when that is not known, or was a delete. */
  readonly record: Pick<LeaseRecord, "holder" | "generation"> | null;
  /** How it ended, for who knows the row before; null where that cannot be told. */
  readonly end: string | null;
}

/** As few payloads as the limit allows. */
export function payloadsOf(news: readonly News[]): string[] {
  if (news.some(({ id }) => id === EVERYTHING)) return [EVERYTHING];
  const payloads: string[] = [];
  let part: News[] = [];
  let bytes = 0;
  for (const each of news) {
    const { id, end } = each;
    const endBytes = (end?.length ?? 0) + END_SEPARATOR.length;
    const size = Buffer.byteLength(id) + KEY_SEPARATOR.length + 1 + endBytes + MARK_LENGTH;
    if (bytes > 0 && bytes + size > MAX_PAYLOAD_BYTES) {
      payloads.push(payloadOf(part));
      part = [];
      bytes = 0;
    }
    part.push(each);
    bytes += size;
  }
  if (bytes > 0) payloads.push(payloadOf(part));
  return payloads;
}

/** For so few that the limit does not matter. */
export function payloadOf(news: readonly News[]): string {
  let letters = "";
  let ids = "";
  let ends = "";
  let marks = "";
  for (const { id, held, record, end } of news) {
    letters += LETTERS[held];
    ids += KEY_SEPARATOR + id;
    ends += (end ?? "") + END_SEPARATOR;
    marks += record === null ? NO_MARK : markOf(record);
  }
  const hasEnds = ends.length > news.length * END_SEPARATOR.length;
  return letters + ids + (hasEnds ? KEY_SEPARATOR + ends : "") + KEY_SEPARATOR + marks;
}

/** Has no slash. */
function markOf({ holder, generation }: Pick<LeaseRecord, "holder" | "generation">): string {
  const grant = generation.toString(36).slice(-HALF_MARK_LENGTH).padStart(HALF_MARK_LENGTH, "0");
  return hash("sha256", holder, "base64url").slice(0, HALF_MARK_LENGTH) + grant;
}

/** The keys of a payload, also of one without letters. */
export function changesFrom(payload: string): Change[] {
  const lines = payload.split(KEY_SEPARATOR);
  const [letters = ""] = lines;
  const ids = letters.includes("/") ? lines : lines.slice(1, 1 + letters.length);
  const marks = lines.at(-1) ?? "";
  const hasEnds = ids !== lines && lines.length === letters.length + 3;
  const ends = hasEnds ? (lines.at(-2) ?? "").split(END_SEPARATOR) : [];
  return ids.flatMap((id, index) => {
    const key = keyFrom(id);
    if (key === null) return [];
    const letter = ids === lines ? "" : letters.charAt(index);
    const mark = marks.includes("/") ? "" : marks.slice(index * MARK_LENGTH, (index + 1) * MARK_LENGTH);
    const known = mark.length === MARK_LENGTH && mark !== NO_MARK;
    const by = known ? mark.slice(0, HALF_MARK_LENGTH) : null;
    const grant = known ? mark.slice(HALF_MARK_LENGTH) : null;
    return { key, held: HELD.get(letter) ?? "unknown", by, grant, end: ends[index] || null };
  });
}

/** Reads `tenant/name`; a tenant contains no slash. Null for what is no key. */
export function keyFrom(id: string): LeaseKey | null {
  const slash = id.indexOf("/");
  return slash > 0 ? { tenant: id.slice(0, slash), name: id.slice(slash + 1) } : null;
}
