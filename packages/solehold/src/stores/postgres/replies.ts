/** What the statements answer. Reads of many answer one text a row, its parts divided by line breaks. */
import type { LeaseKey } from "../../core/index.ts";
import { ABSENT, type StoredRecord } from "../../store/index.ts";
import { storedRecordFrom } from "./columns.ts";
import { isTrue, type Row } from "./driver.ts";
import { SEPARATOR } from "./sql-text.ts";

/** One write that was done. */
export interface WriteReply {
  readonly version: string;
  readonly timeMs: number;
}

/** `version` is what a lone write brought with it; a batch is told. */
export function writeReplyFrom(row: Row, version = row[2] ?? ""): WriteReply {
  return { version, timeMs: wholeMs(row[0]) };
}

/** Whether anybody listens. */
export function isWatched(row: Row): boolean {
  return isTrue(row[1]);
}

/** The id of the key that a reply of a batch is about. */
export function replyIdFrom(row: Row): string {
  return `${row[3]}/${row[4]}`;
}

/** The store's time, and what follows it; null when nothing does. */
export function timedReplyFrom(row: Row | undefined): {
  readonly timeMs: number;
  readonly rest: string | null;
} {
  const [time, rest] = firstPart(row?.[0] ?? "");
  return { timeMs: wholeMs(time), rest };
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

/** The server's time comes in microseconds. */
export function wholeMs(microseconds: string | null | undefined): number {
  return Math.floor(Number(microseconds) / 1_000);
}
