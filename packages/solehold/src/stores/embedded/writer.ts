/**
 * Conditional writes. Each becomes one instruction with the version it expects; the thread that carries
 * out the transaction compares it with the eight bytes in front of the stored value. A call of many writes
 * is queued in parts, with a turn of the event loop between them; parts that follow closely share a commit.
 */
import { keyId } from "../../core/index.ts";
import type { Env } from "../../env/index.ts";
import type { ConditionalWrite, StoreError, WriteResult } from "../contract.ts";
import type { Databases } from "./database.ts";
import { commitFailure } from "./failure.ts";
import type { Journal } from "./journal.ts";
import { keyBytes } from "./keys.ts";
import { nextTurn, RECORDS_PER_TURN, type Reader } from "./reader.ts";
import type { Revisions } from "./revisions.ts";
import type { ValueCodec } from "./value.ts";

export interface WriterParts {
  readonly databases: Databases;
  readonly codec: ValueCodec;
  readonly reader: Reader;
  readonly revisions: Revisions;
  readonly journal: Journal;
  readonly env: Env;
  readonly folder: string;
}

interface Instruction {
  readonly write: ConditionalWrite;
  readonly bytes: Buffer;
  /** Null to delete. */
  readonly value: string | null;
  readonly revision: number;
}

type PartOutcome =
  | { readonly ok: true; readonly results: readonly WriteResult[] }
  | { readonly ok: false; readonly count: number; readonly error: StoreError };

export class Writer {
  readonly #parts: WriterParts;
  /** Set when LMDB refuses further work in this process: a queued write would never be answered. */
  #broken: StoreError | null = null;

  constructor(parts: WriterParts) {
    this.#parts = parts;
  }

  async apply(writes: readonly ConditionalWrite[]): Promise<readonly WriteResult[]> {
    const { env, revisions } = this.#parts;
    const outcomes: Promise<PartOutcome>[] = [];
    for (let start = 0; start < writes.length; start += RECORDS_PER_TURN) {
      if (start > 0) await nextTurn(env);
      const part = writes.slice(start, start + RECORDS_PER_TURN);
      if (!revisions.has(part.length)) await revisions.reserve(part.length);
      outcomes.push(this.#applyPart(part));
    }
    return combined(await Promise.all(outcomes));
  }

  /** Never rejects, so that a part that fails early is not an unhandled rejection while others run. */
  async #applyPart(writes: readonly ConditionalWrite[]): Promise<PartOutcome> {
    const { databases, env, folder } = this.#parts;
    try {
      if (this.#broken !== null) throw this.#broken;
      const results = await this.#commit(writes);
      return { ok: true, results };
    } catch (cause) {
      const error = await commitFailure(cause, databases, env, folder);
      if (error.outcome === "unknown") this.#broken = error;
      return { ok: false, count: writes.length, error };
    }
  }

  async #commit(writes: readonly ConditionalWrite[]): Promise<readonly WriteResult[]> {
    // All is encoded before anything is queued: an error here leaves nothing half queued.
    const instructions = writes.map((write) => this.#instruction(write));
    const done = await Promise.all(instructions.map((instruction) => this.#queue(instruction)));
    this.#parts.reader.refresh();
    return instructions.map((instruction, index) => this.#result(instruction, done[index] === true));
  }

  #instruction(write: ConditionalWrite): Instruction {
    const { codec, revisions } = this.#parts;
    const bytes = keyBytes(write.key);
    if (write.next === null) return { write, bytes, value: null, revision: 0 };
    return { write, bytes, value: codec.encode(write.next), revision: revisions.take() };
  }

  #queue({ write, bytes, value, revision }: Instruction): Promise<boolean> {
    const { databases, journal } = this.#parts;
    const expected = write.expected === null ? null : Number(write.expected);
    if (value === null && expected === null) return Promise.resolve(false);
    journal.note(keyId(write.key));
    if (value !== null) return databases.records.put(bytes, value, revision, expected);
    return databases.records.remove(bytes, expected ?? Number.NaN);
  }

  #result({ write, value, revision }: Instruction, done: boolean): WriteResult {
    if (done) return { kind: "applied", version: value === null ? null : String(revision) };
    const current = this.#parts.reader.current(write.key);
    // Nothing was to be deleted, and nothing is there.
    if (value === null && write.expected === null && current.kind === "absent")
      return { kind: "applied", version: null };
    return { kind: "conflict", current };
  }
}

/** A call of one part fails as a whole; of several, those that were committed are told so. */
function combined(outcomes: readonly PartOutcome[]): readonly WriteResult[] {
  const failed = outcomes.find((outcome) => !outcome.ok);
  if (failed !== undefined && !failed.ok && outcomes.every((outcome) => !outcome.ok)) throw failed.error;
  return outcomes.flatMap((outcome) =>
    outcome.ok ? outcome.results : Array.from({ length: outcome.count }, () => unknownResult(outcome.error)),
  );
}

function unknownResult(cause: Error): WriteResult {
  return { kind: "unknown", cause };
}
