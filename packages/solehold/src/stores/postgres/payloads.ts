/**
 * What a notification says: a line with one letter for each key, whether it is held, then the keys, a line
 * each. Nothing else of the records, because every role may listen to every channel.
 *
 * A line of letters has no slash, which every key has: who does not know letters takes it for no key.
 */
import type { LeaseKey } from "../../core/index.ts";
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

/** What is announced of a key, which is named by its id. */
export interface News {
  readonly id: string;
  readonly held: Change["held"];
}

/** As few payloads as the limit allows. */
export function payloadsOf(news: readonly News[]): string[] {
  if (news.some(({ id }) => id === EVERYTHING)) return [EVERYTHING];
  const payloads: string[] = [];
  let letters = "";
  let ids = "";
  let bytes = 0;
  for (const { id, held } of news) {
    const size = Buffer.byteLength(id) + KEY_SEPARATOR.length + 1;
    if (bytes > 0 && bytes + size > MAX_PAYLOAD_BYTES) {
      payloads.push(letters + ids);
      letters = "";
      ids = "";
      bytes = 0;
    }
    letters += LETTERS[held];
    ids += KEY_SEPARATOR + id;
    bytes += size;
  }
  if (bytes > 0) payloads.push(letters + ids);
  return payloads;
}

/** The keys of a payload, also of one without letters. */
export function changesFrom(payload: string): Change[] {
  const lines = payload.split(KEY_SEPARATOR);
  const [letters = ""] = lines;
  const ids = letters.includes("/") ? lines : lines.slice(1);
  return ids.flatMap((id, index) => {
    const key = keyFrom(id);
    const letter = ids === lines ? "" : letters.charAt(index);
    return key === null ? [] : { key, held: HELD.get(letter) ?? "unknown" };
  });
}

/** Reads `tenant/name`; a tenant contains no slash. Null for what is no key. */
export function keyFrom(id: string): LeaseKey | null {
  const slash = id.indexOf("/");
  return slash > 0 ? { tenant: id.slice(0, slash), name: id.slice(slash + 1) } : null;
}
