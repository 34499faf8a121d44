/** What the statements answer: one text a row, its parts divided by line breaks. */
import type { LeaseKey } from "../../core/index.ts";
import { ABSENT, type StoredRecord } from "../contract.ts";
import { storedRecordFrom } from "./columns.ts";
import { type Row, textOf } from "./driver.ts";
import { SEPARATOR } from "./sql-text.ts";

/** One write that was done. */
export interface WriteReply {
  readonly version: string;
  readonly timeMs: number;
  /** Whether anybody listens. */
  readonly watched: boolean;
  /** `tenant/name`; empty in the answer to a lone write. */
  readonly id: string;
}

export function writeReplyFrom(row: Row): WriteReply {
  const [version = "", time, watched, id = ""] = replyOf(row).split(SEPARATOR);
  return { version, timeMs: Number(time), watched: watched === "t", id };
}

/** The store's time, and what follows it; null when nothing does. */
export function timedReplyFrom(row: Row | undefined): {
  readonly timeMs: number;
  readonly rest: string | null;
} {
  const reply = replyOf(row);
  const [time, rest] = firstPart(reply);
  return { timeMs: Number(time), rest };
}

/** One of the keys of a read of many: which of them, and its row. */
export function placedReplyFrom(row: Row): {
  readonly timeMs: number;
  readonly place: number;
  readonly rest: string | null;
} {
  const { timeMs, rest: placed } = timedReplyFrom(row);
  const [place, rest] = firstPart(placed ?? "");
  return { timeMs, place: Number(place), rest };
}

export function storedFrom(row: string | null, key: LeaseKey): StoredRecord {
  return row === null ? ABSENT : storedRecordFrom(row, key);
}

function firstPart(text: string): readonly [first: string, rest: string | null] {
  const cut = text.indexOf(SEPARATOR);
  return cut < 0 ? [text, null] : [text.slice(0, cut), text.slice(cut + 1)];
}

function replyOf(row: Row | undefined): string {
  return textOf(row, "reply") ?? "";
}
