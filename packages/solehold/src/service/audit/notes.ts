/**
 * Events that lie in the store, beside the records that they are about, until they are in the trail's files. Text and
 * place of a note are the notebook's business; what is in it is written and read here:
 *   the sequence that was the last durable one when the note was made, a line feed, then its events, encoded, one a line
 * An event of a note can only be in the files after that sequence, so few lines have to be looked at to know whether
 * a note that a crash left in the store had already come that far.
 */
import type { Notebook, StoreNote } from "../../stores/index.ts";
import { eventTextOf } from "./chain.ts";
import type { AuditEvent } from "./event.ts";
import type { Segment } from "./folder.ts";
import type { Journal } from "./journal.ts";
import { readLines } from "./lines.ts";
import type { CommitQueue } from "./queue.ts";
import { segmentsAfter } from "./scan.ts";
import type { AuditNotes } from "./trail.ts";

interface TrailNotesOptions {
  readonly notebook: Notebook;
  readonly journal: Pick<Journal, "durableHead">;
  readonly queue: Pick<CommitQueue, "pushKept">;
  /** Throws when the event cannot be taken. */
  readonly encode: (event: AuditEvent) => string;
}

export class TrailNotes implements AuditNotes {
  readonly #options: TrailNotesOptions;

  constructor(options: TrailNotesOptions) {
    this.#options = options;
  }

  make(events: readonly AuditEvent[]): StoreNote | null {
    const { notebook, journal, encode } = this.#options;
    try {
      return notebook.note(`${journal.durableHead.sequence}\n${events.map(encode).join("\n")}`);
    } catch {
      // What is wrong with an event is for `append` to say.
      return null;
    }
  }

  keep(note: StoreNote): void {
    const { notebook, queue } = this.#options;
    const { text } = note;
    const start = text.indexOf("\n") + 1;
    const end = text.indexOf("\n", start);
    const giveBack = (): void => notebook.giveBack(note);
    if (end < 0) queue.pushKept(text.slice(start), giveBack);
    else {
      const events = eventsOf(note);
      for (const event of events.slice(0, -1)) queue.pushKept(event, null);
      queue.pushKept(events.at(-1) ?? "", giveBack);
    }
  }

  drop(note: StoreNote): void {
    this.#options.notebook.giveBack(note);
  }
}

function eventsOf({ text }: StoreNote): readonly string[] {
  return text.slice(text.indexOf("\n") + 1).split("\n");
}

function sequenceBefore({ text }: StoreNote): number {
  return Number.parseInt(text, 10);
}

/** Those events of the notes that are not in the files, in the order of the notes. */
export async function missingEvents(folder: string, left: Notebook["left"]): Promise<readonly string[]> {
  if (left.length === 0) return [];
  const noted = left.flatMap(eventsOf);
  const after = left.reduce((least, note) => Math.min(least, sequenceBefore(note)), Number.MAX_SAFE_INTEGER);
  const written = new Map<string, number>();
  for (const segment of await segmentsAfter(folder, after))
    await countEvents(segment, new Set(noted), written);
  return noted.filter((event) => {
    const count = written.get(event) ?? 0;
    written.set(event, count - 1);
    return count <= 0;
  });
}

async function countEvents(
  { path }: Segment,
  wanted: ReadonlySet<string>,
  counts: Map<string, number>,
): Promise<void> {
  for await (const { lines } of readLines(path)) {
    for (const line of lines) {
      const event = eventTextOf(line);
      if (event !== null && wanted.has(event)) counts.set(event, (counts.get(event) ?? 0) + 1);
    }
  }
}
