/**
 * Events that lie in the store, beside the records that they are about, until they are in the trail's files. Bytes and
 * place of a note are the notebook's business; what is in it is written and read here:
 *   the sequence that was the last durable one when the note was made, with zeros in front, and a line feed, then its
 *   events, encoded, one a line
 * An event of a note can only be in the files after that sequence, so few lines have to be looked at to know whether
 * a note that a crash left in the store had already come that far.
 *
 * From its note an event goes into a line as it lies there: what is made thousands of times a second, and has to wait
 * for a moment, should not be a text that the garbage collector carries about.
 */
import type { LeftNote, Notebook, StoreNote } from "../../store/index.ts";
import { writeDigits } from "../../stores/support/decimal.ts";
import { eventTextOf } from "./chain.ts";
import type { AuditEvent } from "./event.ts";
import type { Segment } from "./folder.ts";
import type { Journal } from "./journal.ts";
import { MOST_PLAIN_BYTES, NOT_PLAIN } from "./plain.ts";
import type { CommitQueue } from "./queue.ts";
import type { AuditReader } from "./reader.ts";
import { segmentsAfter } from "./scan.ts";
import { type AuditNotes, writePlain } from "./trail.ts";

interface TrailNotesOptions {
  readonly notebook: Notebook;
  readonly journal: Pick<Journal, "durableHead">;
  readonly queue: Pick<CommitQueue, "pushKept">;
  /** Whether the trail still takes events. */
  readonly isOpen: () => boolean;
  /** Throws when the event cannot be taken. */
  readonly encode: (event: AuditEvent) => string;
}

const SEQUENCE_DIGITS = 16;
/** The sequence and its line feed. */
const HEAD_BYTES = SEQUENCE_DIGITS + 1;
const LINE_FEED = 0x0a;
/** UTF-8 needs no more for a UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3;

export class TrailNotes implements AuditNotes {
  readonly #options: TrailNotesOptions;
  readonly #head = Buffer.alloc(HEAD_BYTES, "\n");
  /** What the head says. */
  #sequence = -1;

  constructor(options: TrailNotesOptions) {
    this.#options = options;
  }

  make(events: readonly AuditEvent[]): StoreNote | null {
    if (!this.#options.isOpen()) return null;
    try {
      return this.#plainNote(events) ?? this.#anyNote(events);
    } catch {
      // What is wrong with an event is for `append` to say.
      return null;
    }
  }

  #plainNote(events: readonly AuditEvent[]): StoreNote | null {
    const mostBytes = HEAD_BYTES + events.length * (MOST_PLAIN_BYTES + 1);
    return this.#options.notebook.note(mostBytes, (page, start) => {
      let end = this.#writeHead(page, start);
      for (const event of events) {
        end = writePlain(event, page, end);
        if (end < 0) return NOT_PLAIN;
        page[end] = LINE_FEED;
        end += 1;
      }
      return end - 1;
    });
  }

  #anyNote(events: readonly AuditEvent[]): StoreNote | null {
    const text = events.map(this.#options.encode).join("\n");
    const mostBytes = HEAD_BYTES + text.length * MAX_BYTES_PER_UNIT;
    return this.#options.notebook.note(mostBytes, (page, start) => {
      const textAt = this.#writeHead(page, start);
      return textAt + page.write(text, textAt);
    });
  }

  #writeHead(page: Buffer, start: number): number {
    const { sequence } = this.#options.journal.durableHead;
    if (sequence !== this.#sequence) writeDigits(sequence, SEQUENCE_DIGITS, this.#head, 0);
    this.#sequence = sequence;
    for (let index = 0; index < HEAD_BYTES; index += 1) page[start + index] = this.#head[index] ?? 0;
    return start + HEAD_BYTES;
  }

  keep(note: StoreNote, { length }: readonly AuditEvent[]): void {
    const { notebook, queue } = this.#options;
    const { page, end } = note;
    let start = note.start + HEAD_BYTES;
    for (let left = length; left > 1; left -= 1) {
      const lineEnd = page.indexOf(LINE_FEED, start);
      queue.pushKept({ page, start, end: lineEnd }, null);
      start = lineEnd + 1;
    }
    queue.pushKept({ page, start, end }, () => notebook.giveBack(note));
  }

  drop(note: StoreNote): void {
    this.#options.notebook.giveBack(note);
  }
}

function eventsOf({ text }: LeftNote): readonly string[] {
  return text.slice(text.indexOf("\n") + 1).split("\n");
}

function sequenceBefore({ text }: LeftNote): number {
  return Number.parseInt(text, 10);
}

/** Those events of the notes that are not in the files, in the order of the notes. */
export async function missingEvents(
  reader: AuditReader,
  folder: string,
  left: Notebook["left"],
): Promise<readonly string[]> {
  if (left.length === 0) return [];
  const noted = left.flatMap(eventsOf);
  const after = left.reduce((least, note) => Math.min(least, sequenceBefore(note)), Number.MAX_SAFE_INTEGER);
  const written = new Map<string, number>();
  for (const segment of await segmentsAfter(folder, after, reader))
    await countEvents(reader, segment, new Set(noted), written);
  return noted.filter((event) => {
    const count = written.get(event) ?? 0;
    written.set(event, count - 1);
    return count <= 0;
  });
}

async function countEvents(
  reader: AuditReader,
  { path }: Segment,
  wanted: ReadonlySet<string>,
  counts: Map<string, number>,
): Promise<void> {
  for await (const { lines } of reader.lines(path)) {
    for (const line of lines) {
      const event = eventTextOf(line);
      if (event !== null && wanted.has(event)) counts.set(event, (counts.get(event) ?? 0) + 1);
    }
  }
}
