/**
 * Conditional writes. Each becomes one instruction with the version it expects; the thread that carries
 * out the transaction compares it with the eight bytes in front of the stored value. A call of very many
 * writes is queued in parts, one a turn of the event loop; what is queued while a commit is under way is the
 * next commit.
 */
import type { Env } from "../../env/index.ts";
import { type ConditionalWrite, StoreError, type WriteResult } from "../contract.ts";
import type { Databases } from "./database.ts";
import { commitFailure, readFailure } from "./failure.ts";
import type { Journal } from "./journal.ts";
import { databaseKey } from "./keys.ts";
import type { Reader } from "./reader.ts";
import type { Revisions } from "./revisions.ts";
import { type Turns, WRITES_PER_TURN } from "./turns.ts";
import type { ValueCodec } from "./value.ts";

/** Not yet answered at any time, so that a call of any length needs bounded memory. */
const PARTS_AT_ONCE = 10;

/** The answer to a delete of what must be absent: nothing to queue, one look after the others. */
const NOT_DONE = Promise.resolve(false);

export interface WriterParts {
  readonly databases: Databases;
  readonly codec: ValueCodec;
  readonly reader: Reader;
  readonly revisions: Revisions;
  readonly journal: Journal;
  readonly turns: Turns;
  readonly env: Env;
  readonly folder: string;
}

/** What is queued for the writes of a part, parallel to them. */
interface Instructions {
  readonly keys: readonly string[];
  /** Null for what must be absent. */
  readonly expected: readonly (number | null)[];
  /** Null to delete. */
  readonly values: readonly (Uint8Array | null)[];
}

type PartOutcome = { readonly ok: true } | { readonly ok: false; readonly error: StoreError };

export class Writer {
  readonly #parts: WriterParts;
  /** Set when LMDB refuses further work in this process: a queued write would never be answered. */
  #broken: StoreError | null = null;

  constructor(parts: WriterParts) {
    this.#parts = parts;
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<readonly WriteResult[]> {
    const count = writes.length;
    const firstRevision = await this.#takeRevisions(count);
    const results = new Array<WriteResult>(count);
    if (count <= WRITES_PER_TURN) {
      assertSomeCommitted([await this.#applyPart({ writes, results, firstRevision, start: 0, end: count })]);
      return results;
    }
    assertSomeCommitted(await this.#applyInTurns({ writes, results, firstRevision, start: 0, end: count }));
    return results;
  }

  async #applyInTurns({ start: first, end: last, ...call }: Part): Promise<readonly PartOutcome[]> {
    const { turns } = this.#parts;
    const outcomes: Promise<PartOutcome>[] = [];
    for (let start = first; start < last; ) {
      await outcomes[outcomes.length - PARTS_AT_ONCE];
      while (turns.room === 0) await turns.next();
      const end = Math.min(start + turns.room, last);
      outcomes.push(this.#applyPart({ ...call, start, end }));
      start = end;
    }
    return await Promise.all(outcomes);
  }

  /** For the whole call at once: parts that waited for numbers would all be queued in the same turn. */
  async #takeRevisions(count: number): Promise<number> {
    const { revisions, databases, env, folder } = this.#parts;
    try {
      this.#assertWorking();
      while (!revisions.has(count)) await revisions.refill(count);
      return revisions.take(count);
    } catch (error) {
      throw await commitFailure(error, databases, env, folder);
    }
  }

  /** Never rejects, so that a part that fails early is not an unhandled rejection while others run. */
  async #applyPart(part: Part): Promise<PartOutcome> {
    const { databases, env, folder } = this.#parts;
    try {
      this.#assertWorking();
      await this.#commit(part);
      return { ok: true };
    } catch (cause) {
      const error = await commitFailure(cause, databases, env, folder);
      if (error.outcome === "unknown") this.#broken ??= error;
      part.results.fill({ kind: "unknown", cause: error }, part.start, part.end);
      return { ok: false, error };
    }
  }

  #assertWorking(): void {
    if (this.#broken === null) return;
    const { message, kind } = this.#broken;
    throw new StoreError(kind, message, { outcome: "not-applied", cause: this.#broken });
  }

  async #commit(part: Part): Promise<void> {
    // All is encoded before anything is queued: an error here leaves nothing half queued.
    const instructions = this.#encode(part);
    const firstRevision = part.firstRevision + part.start;
    const done = await Promise.all(this.#queue(instructions, firstRevision));
    // From here on the transaction is on disk, whatever else goes wrong.
    for (let index = 0; index < done.length; index += 1) {
      const write = writeAt(part, index);
      const version = write.next === null ? null : String(firstRevision + index);
      part.results[part.start + index] = done[index] ? { kind: "applied", version } : this.#refusal(write);
    }
  }

  #encode(part: Part): Instructions {
    const { codec } = this.#parts;
    const count = part.end - part.start;
    const keys = new Array<string>(count);
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

  #queue({ keys, expected, values }: Instructions, firstRevision: number): Promise<boolean>[] {
    const { databases, journal, turns } = this.#parts;
    const { records } = databases;
    const queued = keys.map((key, index) => {
      const value = values[index] ?? null;
      const revision = expected[index] ?? null;
      if (value !== null) return records.put(key, value, firstRevision + index, revision);
      return revision === null ? NOT_DONE : records.remove(key, revision);
    });
    journal.note(keys);
    turns.note(keys.length);
    return queued;
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

function writeAt({ writes, start }: Part, index: number): ConditionalWrite {
  const write = writes[start + index];
  if (write === undefined) throw new RangeError(`there is no write ${start + index}`);
  return write;
}

/** A call fails as a whole when none of it was committed; otherwise its results say which part was not. */
function assertSomeCommitted(outcomes: readonly PartOutcome[]): void {
  const errors = outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error]));
  if (errors.length === 0 || errors.length < outcomes.length) return;
  throw errors.find(({ outcome }) => outcome === "unknown") ?? errors[0];
}
