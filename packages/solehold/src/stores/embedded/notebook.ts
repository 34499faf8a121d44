/**
 * Notes that are written in the same transaction as the records of a call, until they are safe elsewhere. Those of a
 * call are one value: a value of their own each would cost the database more than the records.
 *
 * A note is written once, into a page in memory, with its place and length before it; a bundle is a copy of what lies
 * there, in one piece where its notes were made in a row.
 *
 * A notebook is a ring: bundle N lies at N modulo its size. So nothing has to be deleted; a slot is used again when
 * all notes in it have been given back. Every bundle also says up to which place all had been given back when it was
 * queued. What the latest one does not count as given back is `left` when the notebook is opened again: a few of
 * those may be safe elsewhere all the same.
 */
import type { Database, RootDatabaseOptions } from "lmdb";
import type { LeftNote, Notebook, StoreNote } from "../../store/index.ts";
import { writeDigits } from "../support/decimal.ts";
import type { Databases } from "./database.ts";
import type { WriteGate } from "./write-gate.ts";

/** Bundles, and what fits into one: together they bound what a notebook takes of the disk. */
const RING_BUNDLES = 256;
const BUNDLE_BYTES = 2 ** 17;
/** Some tenths of a second of a busy server. */
const MOST_NOTES = 4_096;
/** The key of what was given back at the last `save`: above those of all bundles. */
const SAVED_KEY = 2 ** 31;

const KEY_BYTES = 4;
const BLOCK_BYTES = 2 ** 17;
/** More than the numbers before a bundle take. */
const NUMBERS_BYTES = 48;
/** Before a note stand its place and its length in bytes, with zeros in front, so that they take this much. */
const PLACE_DIGITS = 15;
const LENGTH_DIGITS = 9;
const HEAD_BYTES = PLACE_DIGITS + 1 + LENGTH_DIGITS + 1;

const NUMBERS = /^(\d{1,15}) (\d{1,15})\n/;
const BLANK = 0x20;
const LINE_FEED = 0x0a;

/** Four bytes, the highest first: sorted as bytes they are sorted as numbers. */
const NUMBER_KEYS = {
  writeKey(key: number, target: Uint8Array, start: number): number {
    target[start] = key >>> 24;
    target[start + 1] = key >>> 16;
    target[start + 2] = key >>> 8;
    target[start + 3] = key;
    return start + KEY_BYTES;
  },
  readKey(source: Uint8Array, start: number): number {
    return Buffer.from(source.buffer, source.byteOffset + start, KEY_BYTES).readUInt32BE();
  },
};

type NotesDatabase = Database<string | Uint8Array, number>;

export class NoteRing implements Notebook {
  readonly left: readonly LeftNote[];
  readonly #notes: NotesDatabase;
  readonly #gate: WriteGate;
  #last: number;
  /** All up to here were given back. */
  #through: number;
  /** The highest place that was found. */
  readonly #found: number;
  /** Places of those that were left and have not been given back, in order: between them there are no notes. */
  readonly #leftPlaces: number[];
  /** Those above that were given back before one below them. */
  readonly #early = new Set<number>();
  #bundle: number;
  /** Of each slot the highest place in it. */
  readonly #highest = new Array<number>(RING_BUNDLES).fill(0);
  /** Where notes are written, up to the end; what was written there stays. */
  #page = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #pageEnd = 0;
  /** Bundles on their way. They are never used again: the database's thread reads them later. */
  #block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #end = 0;

  private constructor({ root, gate }: Databases, name: string) {
    this.#gate = gate;
    const options: RootDatabaseOptions = { encoding: "string", keyEncoder: NUMBER_KEYS };
    this.#notes = root.openDB<string | Uint8Array, number>(`notes/${name}`, options);
    const found = readRing(this.#notes);
    this.#last = found.last;
    this.#through = found.through;
    this.#bundle = found.bundle;
    this.left = found.left;
    this.#found = found.last;
    this.#leftPlaces = found.left.map(({ place }) => place);
    // Until they are given back, whichever slots they are in.
    if (found.left.length > 0) this.#highest.fill(found.last);
  }

  /** LMDB writes when a database is opened for the first time. */
  static open(databases: Databases, name: string): Promise<NoteRing> {
    return databases.gate.through(async () => new NoteRing(databases, name));
  }

  note(mostBytes: number, write: (page: Buffer, start: number) => number): StoreNote | null {
    if (this.#last - this.#through >= MOST_NOTES) return null;
    const head = this.#roomInPage(HEAD_BYTES + mostBytes);
    const start = head + HEAD_BYTES;
    const end = write(this.#page, start);
    if (end < start) return null;
    this.#last += 1;
    this.#pageEnd = end;
    writeHead(this.#page, head, this.#last, end - start);
    return new RingNote(this, this.#last, this.#page, start, end);
  }

  #roomInPage(bytes: number): number {
    if (this.#pageEnd + bytes > this.#page.length) {
      this.#page = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, bytes));
      this.#pageEnd = 0;
    }
    return this.#pageEnd;
  }

  giveBack({ place }: { readonly place: number }): void {
    if (place > this.#last || place <= this.#through) return;
    if (place <= this.#found) this.#giveBackLeft(place);
    else if (place > this.#through + 1) {
      this.#early.add(place);
      return;
    } else this.#through = place;
    while (this.#early.delete(this.#through + 1)) this.#through += 1;
  }

  /** A place that was never written is not given back by anybody: it must not hold up those above it. */
  #giveBackLeft(place: number): void {
    const index = this.#leftPlaces.indexOf(place);
    if (index >= 0) this.#leftPlaces.splice(index, 1);
    this.#through = (this.#leftPlaces[0] ?? this.#found + 1) - 1;
  }

  async save(): Promise<void> {
    await this.#gate.through(() => this.#notes.put(SAVED_KEY, String(this.#through)));
  }

  /**
   * What queues these notes for the transaction that is being put together. Null when that is not possible now: there
   * are too many, or what is in the next slot was not given back.
   */
  bundle(notes: readonly RingNote[]): (() => void) | null {
    const slot = (this.#bundle + 1) % RING_BUNDLES;
    if ((this.#highest[slot] ?? 0) > this.#through) return null;
    const bytes = this.#encoded(notes);
    if (bytes === null) return null;
    this.#bundle += 1;
    this.#highest[slot] = notes.reduce((highest, { place }) => Math.max(highest, place), 0);
    return () => {
      // What fails is the transaction, and that reaches its caller by the records.
      this.#notes.put(slot, bytes).catch(ignore);
    };
  }

  /** The bundle's number, what was given back, then for each note its place, its length and its text. */
  #encoded(notes: readonly RingNote[]): Uint8Array | null {
    let mostBytes = NUMBERS_BYTES;
    for (const { start, end } of notes) mostBytes += HEAD_BYTES + end - start;
    if (mostBytes > BUNDLE_BYTES) return null;
    if (this.#end + mostBytes > this.#block.length) {
      this.#block = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, mostBytes));
      this.#end = 0;
    }
    const block = this.#block;
    const start = this.#end;
    let end = start + block.write(`${this.#bundle + 1} ${this.#through}\n`, start);
    for (let first = 0; first < notes.length; ) {
      const last = lastInARow(notes, first);
      const from = (notes[first]?.start ?? 0) - HEAD_BYTES;
      end += notes[first]?.page.copy(block, end, from, notes[last]?.end) ?? 0;
      first = last + 1;
    }
    this.#end = end;
    return new Uint8Array(block.buffer, start, end - start);
  }
}

/** A note that knows where it belongs. */
export class RingNote implements StoreNote {
  readonly ring: NoteRing;
  readonly place: number;
  readonly page: Buffer;
  readonly start: number;
  readonly end: number;

  constructor(ring: NoteRing, place: number, page: Buffer, start: number, end: number) {
    this.ring = ring;
    this.place = place;
    this.page = page;
    this.start = start;
    this.end = end;
  }
}

/** Up to which of the notes each lies right behind the one before it. */
function lastInARow(notes: readonly RingNote[], first: number): number {
  let last = first;
  for (let note = notes[first]; note !== undefined; last += 1) {
    const next = notes[last + 1];
    if (next === undefined || next.page !== note.page || next.start !== note.end + HEAD_BYTES) break;
    note = next;
  }
  return last;
}

function writeHead(page: Buffer, start: number, place: number, bytes: number): void {
  const lengthAt = writeDigits(place, PLACE_DIGITS, page, start);
  page[lengthAt] = BLANK;
  const end = writeDigits(bytes, LENGTH_DIGITS, page, lengthAt + 1);
  page[end] = LINE_FEED;
}

function ignore(): void {}

interface FoundRing {
  readonly last: number;
  readonly through: number;
  readonly bundle: number;
  readonly left: readonly LeftNote[];
}

function readRing(database: NotesDatabase): FoundRing {
  const notes: LeftNote[] = [];
  let bundle = 0;
  let through = 0;
  for (const { key, value } of database.getRange()) {
    if (typeof value !== "string") continue;
    if (key === SAVED_KEY) through = Math.max(through, Number(value) || 0);
    else {
      const bytes = Buffer.from(value);
      const [number, givenBack] = numbersAt(bytes, 0);
      bundle = Math.max(bundle, number);
      through = Math.max(through, givenBack);
      notes.push(...notesIn(bytes));
    }
  }
  const last = notes.reduce((highest, { place }) => Math.max(highest, place), through);
  const left = notes.filter(({ place }) => place > through).sort((a, b) => a.place - b.place);
  return { last, through, bundle, left };
}

/** What is damaged ends the bundle: there is no telling what came after. */
function notesIn(value: Buffer): readonly LeftNote[] {
  const notes: LeftNote[] = [];
  for (let start = value.indexOf(LINE_FEED) + 1; start > 0 && start < value.length; ) {
    const [place, length] = numbersAt(value, start);
    const textStart = value.indexOf(LINE_FEED, start) + 1;
    const end = textStart + length;
    if (place === 0 || textStart === 0 || end > value.length) break;
    notes.push({ place, text: value.toString("utf8", textStart, end) });
    start = end;
  }
  return notes;
}

/** The two numbers of the line that begins there; zeros for what is none. */
function numbersAt(value: Buffer, start: number): readonly [number, number] {
  const [, first, second] = NUMBERS.exec(value.toString("latin1", start, start + NUMBERS_BYTES)) ?? [];
  return [Number(first ?? 0), Number(second ?? 0)];
}
