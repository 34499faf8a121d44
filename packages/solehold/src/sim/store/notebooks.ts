/**
 * Notes of the simulated store: text that is written in the same step as a record, or not at all, and that outlives
 * the process that wrote it. As in the embedded store, what was given back is known to the store only by what comes
 * after it: every note that is kept says up to which place all had been given back when it was sent, and so does
 * `save`. So a successor may find some as `left` that are safe elsewhere.
 *
 * A notebook that was opened again is closed for whoever had it before: a write of a dead process that arrives only
 * then is done without its note.
 */
import { withinLimit } from "../../manager/patient-store.ts";
import type { LeftNote, Notebook, StoreNote } from "../../store/index.ts";
import type { SimConfig } from "../config.ts";
import type { SimulatedEnv } from "../world/env.ts";
import type { World } from "../world/world.ts";

const PAGE_BYTES = 2 ** 16;

interface StoredBook {
  /** Counts how often it was opened. */
  opening: number;
  through: number;
  last: number;
  readonly notes: Map<number, string>;
}

/** What the store tells to who opens a notebook. */
export interface OpenedBook {
  readonly name: string;
  readonly opening: number;
  readonly last: number;
  readonly through: number;
  readonly left: readonly LeftNote[];
}

/** The store's side. */
export class StoreNotebooks {
  readonly #books = new Map<string, StoredBook>();
  /** Whether there is room for a note at the moment. */
  readonly #hasRoom: () => boolean;

  constructor(hasRoom: () => boolean) {
    this.#hasRoom = hasRoom;
  }

  open(name: string): OpenedBook {
    const book = this.#books.get(name) ?? { opening: 0, through: 0, last: 0, notes: new Map() };
    this.#books.set(name, book);
    book.opening += 1;
    const { opening, through, last } = book;
    return { name, opening, last: Math.max(last, through), through, left: leftIn(book) };
  }

  /** With the record that it was sent with. False when it is not kept. */
  keep(note: SimulatedNote): boolean {
    const { name, opening, place, through } = note;
    const book = this.#books.get(name);
    if (book?.opening !== opening || !this.#hasRoom()) return false;
    book.notes.set(place, note.text());
    book.last = Math.max(book.last, place);
    book.through = Math.max(book.through, through);
    return true;
  }

  save(name: string, opening: number, through: number): void {
    const book = this.#books.get(name);
    if (book?.opening === opening) book.through = Math.max(book.through, through);
  }

  /** What a successor would find now, for who judges the run. */
  left(name: string): readonly LeftNote[] {
    const book = this.#books.get(name);
    return book === undefined ? [] : leftIn(book);
  }
}

function leftIn({ notes, through }: StoredBook): readonly LeftNote[] {
  return [...notes]
    .filter(([place]) => place > through)
    .map(([place, text]) => ({ place, text }))
    .sort((a, b) => a.place - b.place);
}

/** A process's side. */
export class SimulatedNotebook implements Notebook {
  readonly left: readonly LeftNote[];
  readonly #opened: OpenedBook;
  readonly #mostNotes: number;
  readonly #save: (through: number) => Promise<void>;
  readonly #early = new Set<number>();
  #last: number;
  #through: number;
  #page = Buffer.allocUnsafeSlow(PAGE_BYTES);
  #pageEnd = 0;

  constructor(opened: OpenedBook, mostNotes: number, save: (through: number) => Promise<void>) {
    this.left = opened.left;
    this.#opened = opened;
    this.#mostNotes = mostNotes;
    this.#save = save;
    this.#last = opened.last;
    this.#through = opened.through;
    // Places between those that are left were never written, or are not needed any more.
    const left = new Set(opened.left.map(({ place }) => place));
    for (let place = opened.through + 1; place <= opened.last; place += 1)
      if (!left.has(place)) this.giveBack({ place });
  }

  note(mostBytes: number, write: (page: Buffer, start: number) => number): StoreNote | null {
    if (this.#last - this.#through >= this.#mostNotes) return null;
    if (this.#pageEnd + mostBytes > this.#page.length) {
      this.#page = Buffer.allocUnsafeSlow(Math.max(PAGE_BYTES, mostBytes));
      this.#pageEnd = 0;
    }
    const start = this.#pageEnd;
    const end = write(this.#page, start);
    if (end < start) return null;
    this.#last += 1;
    this.#pageEnd = end;
    const { name, opening } = this.#opened;
    const bytes = { place: this.#last, page: this.#page, start, end };
    return new SimulatedNote({ name, opening, ...bytes, givenBack: () => this.#through });
  }

  giveBack({ place }: { readonly place: number }): void {
    if (place > this.#last || place <= this.#through) return;
    this.#early.add(place);
    while (this.#early.delete(this.#through + 1)) this.#through += 1;
  }

  save(): Promise<void> {
    return this.#save(this.#through);
  }
}

interface NoteParts extends StoreNote {
  readonly name: string;
  readonly opening: number;
  /** Up to which place all were given back by now. */
  readonly givenBack: () => number;
}

export class SimulatedNote implements StoreNote {
  readonly name: string;
  readonly opening: number;
  readonly place: number;
  readonly page: Buffer;
  readonly start: number;
  readonly end: number;
  readonly #givenBack: () => number;
  /** What its write tells the store of those before it. */
  through = 0;

  constructor({ name, opening, place, page, start, end, givenBack }: NoteParts) {
    this.name = name;
    this.opening = opening;
    this.place = place;
    this.page = page;
    this.start = start;
    this.end = end;
    this.#givenBack = givenBack;
  }

  /** It leaves, with its write. */
  send(): void {
    this.through = this.#givenBack();
  }

  text(): string {
    return this.page.toString("utf8", this.start, this.end);
  }
}

export interface NotebookAccess {
  readonly world: World;
  readonly env: SimulatedEnv;
  readonly config: SimConfig;
  readonly engine: { readonly notebooks: StoreNotebooks };
  /** A message to the store and one back. */
  readonly call: <Reply>(label: string, work: () => Reply) => Promise<Reply>;
}

/** Fails when the store does not answer: nobody else would end the wait of who opens or saves. */
export async function openNotebook(access: NotebookAccess, name: string): Promise<Notebook> {
  const { engine, env, config, world, call } = access;
  const { notebooks } = engine;
  const ask = <Reply>(label: string, work: () => Reply): Promise<Reply> =>
    withinLimit(env, config.callTimeoutMs, label, () => call(label, work));
  // A request that was doubled on its way opens it once.
  let found: OpenedBook | null = null;
  const opened = await ask("open notes", () => {
    found ??= notebooks.open(name);
    return found;
  });
  const mostNotes = world.choices.stream("most notes").pick([2, 8, 64]);
  return new SimulatedNotebook(opened, mostNotes, (through) =>
    ask("save notes", () => notebooks.save(name, opened.opening, through)),
  );
}
