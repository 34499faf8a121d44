/**
 * How the simulated store tells of a change to those who want to know only whether a key is held. Real stores differ in
 * what comes with that: nothing else (a batch of writes), marks of the holder and the grant, what was written over the
 * lease that ended (Redis: without a mark of the grant; PostgreSQL: only to who knows the row before), or the record.
 * Each world has one of these forms.
 *
 * What was written is told as a read would have shown it then. It may be left out, and it may turn out not to be
 * understood when somebody looks at it; until then it may have got old.
 */
import type { LeaseKey, LeaseRecord } from "../../core/index.ts";
import type { StoredRecord, StoreEvent } from "../../store/index.ts";
import { hashText, type RandomStream } from "../world/random.ts";

/** What a store tells of a key besides whether it is held. "ends": what was written when nobody holds it any more. */
export const NEWS_FORMS = ["records", "held", "marks", "ends", "marks and ends"] as const;

export type NewsForm = (typeof NEWS_FORMS)[number];

const LEFT_OUT_RATE = 0.1;
const NOT_UNDERSTOOD_RATE = 0.1;
/** In a base of 36: old marks come back, but not soon. */
const MARK_LENGTH = 4;

export interface Teller {
  readonly form: NewsForm;
  readonly random: RandomStream;
  /** Somebody looked at what was told of the key, and understood it. */
  readonly onLook: (key: LeaseKey, stored: StoredRecord) => void;
}

/** For who wants no more than whether it is held. */
export function holdingEvent(key: LeaseKey, stored: StoredRecord, teller: Teller): StoreEvent {
  const { form } = teller;
  const record = stored.kind === "found" ? stored.record : null;
  if (form === "records") return { kind: "changed", key, record };
  const held = record?.state === "held" ? "yes" : "no";
  const changed = { kind: "changed", key, record: null, held } as const;
  if (record === null || form === "held") return changed;
  const isToldEnd = held === "no" && form !== "marks";
  return {
    ...changed,
    ...(form === "ends" ? (held === "no" ? { by: markOf(record.holder) } : {}) : marksOf(record)),
    ...(isToldEnd ? toldEnd(key, stored, teller) : {}),
  };
}

function toldEnd(
  key: LeaseKey,
  stored: StoredRecord,
  { random, onLook }: Teller,
): { readonly stored?: () => StoredRecord | null } {
  const [isLeftOut, isUnderstood] = [random.chance(LEFT_OUT_RATE), !random.chance(NOT_UNDERSTOOD_RATE)];
  if (isLeftOut) return {};
  const look = (): StoredRecord | null => {
    if (!isUnderstood) return null;
    onLook(key, stored);
    return stored;
  };
  return { stored: look };
}

function marksOf({ holder, generation }: LeaseRecord): { readonly by: string; readonly grant: string } {
  return { by: markOf(holder), grant: generation.toString(36).slice(-MARK_LENGTH) };
}

function markOf(holder: string): string {
  return hashText(holder).toString(36).slice(-MARK_LENGTH);
}
