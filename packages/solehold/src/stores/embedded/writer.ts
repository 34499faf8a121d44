/**
 * Conditional writes. Each becomes one instruction with the version it expects; the thread that carries
 * out the transaction compares it with the eight bytes in front of the stored value. A call of very many
 * writes is queued in parts, one a turn of the event loop; what is queued while a commit is under way is the
 * next commit.
 */
import type { LeaseKey } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import { type ConditionalWrite, StoreError, type WriteResult } from "../../store/index.ts";
import type { Databases } from "./database.ts";
import { commitFailure, readFailure } from "./failure.ts";
import type { Journal } from "./journal.ts";
import { databaseKey } from "./keys.ts";
import { RingNote } from "./notebook.ts";
import type { Reader } from "./reader.ts";
import type { Revisions } from "./revisions.ts";
import type { Space } from "./space.ts";
import { type Turns, WRITES_PER_TURN } from "./turns.ts";
import type { ValueCodec } from "./value.ts";

/** Not yet answered at any time, so that a call of any length needs bounded memory. */
const PARTS_AT_ONCE = 20;

/** The answer to a delete of what must be absent: nothing is queued for it, one look after the others. */
const NOT_DONE = Promise.resolve(false);

export interface WriterParts {
  readonly databases: Databases;
  readonly codec: ValueCodec;
  readonly reader: Reader;
  readonly revisions: Revisions;
  readonly journal: Journal;
  readonly turns: Turns;
  readonly space: Space;
  readonly env: Env;
  readonly folder: string;
}

/** What is queued for the writes of a part, parallel to them. */
interface Instructions {
  readonly keys: readonly LeaseKey[];
  /** Null for what must be absent. */
  readonly expected: readonly (number | null)[];
  /** Null to delete. */
  readonly values: readonly (Uint8Array | null)[];
}

export class Writer {
  readonly #parts: WriterParts;
  /** Set when LMDB refuses further work in this process: a queued write would never be answered. */
  #broken: StoreError | null = null;

  constructor(parts: WriterParts) {
    this.#parts = parts;
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<readonly WriteResult[]> {
    const count = writes.length;
    const { revisions, turns } = this.#parts;
    // For the whole call at once: parts that waited for numbers would all be queued in the same turn.
    while (!revisions.has(count)) await this.#refill(count);
    const results = new Array<WriteResult>(count);
    const call: Part = { writes, results, firstRevision: revisions.take(count), start: 0, end: count };
    if (count > WRITES_PER_TURN) assertSomeCommitted(await this.#applyInTurns(call));
    else {
      if (turns.isForLater(count)) await turns.answers();
      while (turns.isForNext(count)) await turns.next();
      const failure = await this.#applyPart(call);
      if (failure !== null) throw failure;
    }
    return results;
  }

  async #refill(count: number): Promise<void> {
    const { revisions, databases, env, folder } = this.#parts;
    try {
      this.#assertWorking();
      await revisions.refill(count);
    } catch (error) {
      throw await commitFailure(error, databases, env, folder);
    }
  }

  async #applyInTurns({ start: first, end: last, ...call }: Part): Promise<readonly (StoreError | null)[]> {
    const { turns, databases } = this.#parts;
    const { gate } = databases;
    const failures: Promise<StoreError | null>[] = [];
    for (let start = first; start < last; ) {
      await failures[failures.length - PARTS_AT_ONCE];
      // Parts that waited there would all be queued in the same turn.
      while (gate.isShut) await gate.opened();
      while (turns.room === 0) await turns.next();
      const end = Math.min(start + turns.room, last);
      failures.push(this.#applyPart({ ...call, start, end }));
      start = end;
    }
    return await Promise.all(failures);
  }

  /**
   * Null when it was committed. Never rejects, so that a part that fails early is not an unhandled rejection
   * while others run.
   */
  async #applyPart(part: Part): Promise<StoreError | null> {
    const { databases, env, folder } = this.#parts;
    try {
      this.#assertWorking();
      this.#assertRoom(part);
      // All is encoded before anything is queued: an error here leaves nothing half queued.
      const instructions = this.#encode(part);
      const firstRevision = part.firstRevision + part.start;
      const bundle = this.#bundleOf(part);
      if (bundle !== null && (await this.#commit(instructions, firstRevision, bundle)).every(isDone))
        this.#answer(part, null);
      else this.#answer(part, await this.#commit(instructions, firstRevision, null));
      return null;
    } catch (cause) {
      const error = await commitFailure(cause, databases, env, folder);
      if (error.outcome === "unknown") this.#broken ??= error;
      part.results.fill({ kind: "unknown", cause: error }, part.start, part.end);
      return error;
    }
  }

  /** The transaction is on disk, whatever else goes wrong. `done` is null when all were, and their notes with them. */
  #answer(part: Part, done: readonly boolean[] | null): void {
    const { results, start, end, firstRevision } = part;
    for (let index = 0; index < end - start; index += 1) {
      const write = writeAt(part, index);
      const version = write.next === null ? null : String(firstRevision + start + index);
      const isKept = done === null && (write.aside ?? null) !== null;
      if (isKept) results[start + index] = { kind: "applied", version, aside: "kept" };
      else if (done === null || done[index]) results[start + index] = { kind: "applied", version };
      else results[start + index] = this.#refusal(write);
    }
  }

  /** What queues the notes of the writes; null when there are none, or they cannot be kept for the moment. */
  #bundleOf({ writes, start, end }: Part): (() => void) | null {
    const notes: RingNote[] = [];
    for (let index = start; index < end; index += 1) {
      const { aside: note = null, next = null, expected = null } = writes[index] ?? {};
      // What must be absent and is to be deleted has no instruction that a note could belong to.
      if (next === null && expected === null) return null;
      if (note === null) continue;
      if (!(note instanceof RingNote) || note.ring !== (notes[0] ?? note).ring) return null;
      notes.push(note);
    }
    return notes[0]?.ring.bundle(notes) ?? null;
  }

  #assertWorking(): void {
    if (this.#broken === null) return;
    const { message, kind } = this.#broken;
    throw new StoreError(kind, message, { outcome: "not-applied", cause: this.#broken });
  }

  /** Deletes may begin on a full disk: they make room. */
  #assertRoom({ writes, start, end }: Part): void {
    let records = 0;
    for (let index = start; index < end; index += 1) if (writes[index]?.next !== null) records += 1;
    if (records > 0) this.#parts.space.assertFor(records);
  }

  #encode(part: Part): Instructions {
    const { codec } = this.#parts;
    const count = part.end - part.start;
    const keys = new Array<LeaseKey>(count);
    const expected = new Array<number | null>(count);
    const values = new Array<Uint8Array | null>(count);
    for (let index = 0; index < count; index += 1) {
      const write = writeAt(part, index);
      keys[index] = databaseKey(write.key);
      expected[index] = write.expected === null ? null : this.#expectedRevision(write, write.expected);
      values[index] = write.next === null ? null : codec.encode(write.next);
    }
    return { keys, expected, values };
  }

  /** With a bundle of notes all are written or none. */
  async #commit(
    instructions: Instructions,
    firstRevision: number,
    bundle: (() => void) | null,
  ): Promise<boolean[]> {
    const { journal, turns, databases } = this.#parts;
    const { keys } = instructions;
    const { gate } = databases;
    while (gate.isShut) await gate.opened();
    const queued =
      bundle === null
        ? this.#queueEach(instructions, firstRevision)
        : this.#queueTogether(instructions, firstRevision, bundle);
    const count = queued.reduce((sum, each) => (each === NOT_DONE ? sum : sum + 1), 0);
    if (count === 0) return await Promise.all(queued);
    journal.note(keys);
    const commit = turns.note(count);
    gate.begin();
    try {
      return await Promise.all(queued);
    } finally {
      gate.end();
      turns.settle(commit, count);
      // What waited for these answers is queued by now. Where calls take turns, it begins before anybody works on them.
      if (turns.isForAnother(count)) await turns.next();
    }
  }

  #queueEach({ keys, expected, values }: Instructions, firstRevision: number): readonly Promise<boolean>[] {
    const { records } = this.#parts.databases;
    return keys.map((key, index) => {
      const value = values[index] ?? null;
      const revision = expected[index] ?? null;
      if (value !== null) return records.put(key, value, firstRevision + index, revision);
      return revision === null ? NOT_DONE : records.remove(key, revision);
    });
  }

  /**
   * One condition in the other, and all writes in the innermost, without conditions of their own: inside of a block
   * that does not count LMDB 3.5 would carry out a write that must find nothing. All conditions hold if each says so.
   */
  #queueTogether(
    { keys, expected, values }: Instructions,
    firstRevision: number,
    bundle: () => void,
  ): readonly Promise<boolean>[] {
    const { records } = this.#parts.databases;
    const conditions = new Array<Promise<boolean>>(keys.length);
    const writeAll = (): void => {
      for (const [index, key] of keys.entries()) {
        const value = values[index] ?? null;
        if (value === null) records.remove(key);
        else records.put(key, value, firstRevision + index);
      }
      bundle();
    };
    const enter = (index: number): void => {
      const key = keys[index];
      if (key === undefined) writeAll();
      else conditions[index] = records.ifVersion(key, expected[index] ?? null, () => enter(index + 1));
    };
    enter(0);
    return conditions;
  }

  /**
   * A damaged version may be NaN, which equals nothing, not even itself. So that such a record can be
   * repaired, its existence is condition enough. Of two repairs at the same moment the later one stays.
   */
  #expectedRevision({ key }: ConditionalWrite, expected: string): number {
    const { databases, reader } = this.#parts;
    const revision = Number(expected);
    if (!Number.isNaN(revision)) return revision;
    const current = reader.current(key);
    return current.kind !== "absent" && current.version === expected ? databases.anyRevision : revision;
  }

  /** The condition did not hold when the transaction ran. What is current now may be newer still. */
  #refusal(write: ConditionalWrite): WriteResult {
    const { reader, folder } = this.#parts;
    try {
      reader.refresh();
      const current = reader.current(write.key);
      const nothingToDelete = write.next === null && write.expected === null && current.kind === "absent";
      return nothingToDelete ? { kind: "applied", version: null } : { kind: "conflict", current };
    } catch (cause) {
      return { kind: "unknown", cause: readFailure(cause, folder) };
    }
  }
}

/** A stretch of a call's writes, and where their results go. */
interface Part {
  readonly writes: readonly ConditionalWrite[];
  readonly results: WriteResult[];
  /** Of the call's first write; the others count on from it. */
  readonly firstRevision: number;
  readonly start: number;
  readonly end: number;
}

function isDone(done: boolean): boolean {
  return done;
}

function writeAt({ writes, start }: Part, index: number): ConditionalWrite {
  const write = writes[start + index];
  if (write === undefined) throw new RangeError(`there is no write ${start + index}`);
  return write;
}

/** A call fails as a whole when none of it was committed; otherwise its results say which part was not. */
function assertSomeCommitted(failures: readonly (StoreError | null)[]): void {
  const errors = failures.filter((failure) => failure !== null);
  if (errors.length < failures.length) return;
  throw errors.find(({ outcome }) => outcome === "unknown") ?? errors[0];
}
