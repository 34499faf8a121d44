/**
 * What the scripts announce: a letter for each key, then the keys, a line each; behind a lone key that nobody holds any
 * more an empty line and its value, so that whoever waits for it can try at once, without a look.
 */
import type { LeaseKey } from "../../core/index.ts";
import type { StoredRecord, StoreEvent } from "../../store/index.ts";
import type { RedisLayout } from "./layout.ts";
import { holderIn } from "./value.ts";

/** That a key is held now, that it is not, and to one who stands in line, that it is not and that it is its turn. */
export const HELD = "h";
export const ENDED = "e";
export const TURN = "t";

/** The first character of every key. No letter of an announcement is one. */
export const KEY_BEGINS = "{";

/** No key has a line break. */
export const VALUE_FOLLOWS = "\n\n";

/** What is said of one key. */
export interface Announced {
  readonly key: LeaseKey;
  /** Empty where there was none: then one has to look. */
  readonly letter: string;
  readonly value: string | null;
}

/** What a read would show of a value; null when it is not certain. */
export type ShownRecord = (key: LeaseKey, value: string) => StoredRecord | null;

export function announcedIn(message: string, layout: RedisLayout): Announced[] {
  const letters = message.indexOf(KEY_BEGINS);
  const valueAt = message.indexOf(VALUE_FOLLOWS);
  const keysEnd = valueAt < 0 ? message.length : valueAt;
  const value = valueAt < 0 ? null : message.slice(valueAt + VALUE_FOLLOWS.length);
  const announced: Announced[] = [];
  let at = Math.max(0, letters);
  for (let index = 0; at < keysEnd; index += 1) {
    const lineEnd = message.indexOf("\n", at);
    const end = lineEnd < 0 ? keysEnd : lineEnd;
    const key = layout.keyOf(message.slice(at, end));
    if (key !== null) announced.push({ key, letter: index < letters ? message.charAt(index) : "", value });
    at = end + 1;
  }
  return announced;
}

/** For who wants to know no more than whether it is held. */
export function holdingEvent({ key, letter, value }: Announced, shown: ShownRecord): StoreEvent {
  const changed = { kind: "changed", key, record: null } as const;
  if (letter === "") return changed;
  const held = letter === HELD ? "yes" : "no";
  if (value === null) return { ...changed, held };
  // Most who hear it will not try: only who does reads all of it.
  return { ...changed, held, by: holderIn(value), stored: () => shown(key, value) };
}
