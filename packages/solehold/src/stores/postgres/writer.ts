/**
 * Conditional writes: creations, updates and deletes of a batch, one statement for each of the three (see
 * `statements.ts` for why they travel apart), then one read for those that found another version.
 *
 * When one statement of a call fails and another does not, the writes of the failed one are answered as
 * unknown each; when nothing was done the call rejects.
 */
import { keyId } from "../../core/index.ts";
import { type ApplyReply, type ConditionalWrite, StoreError, type WriteResult } from "../contract.ts";
import type { Announcer } from "./announcer.ts";
import { columnValues } from "./columns.ts";
import type { SqlDriver, Values } from "./driver.ts";
import type { Reader } from "./reader.ts";
import { type WriteReply, writeReplyFrom } from "./replies.ts";
import { rowsLiteral } from "./sql-text.ts";
import type { Statement, Statements } from "./statements.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A version that no row has, for those that this store never gave out. */
const NO_VERSION = "00000000-0000-0000-0000-000000000000";

type WriteOperation = "insert" | "update" | "delete";
/** A "check" writes nothing: that an absent key be absent. */
type Operation = WriteOperation | "check";

interface Place {
  readonly index: number;
  readonly write: ConditionalWrite;
}

/** A part of a batch, and what became of it. */
interface PartOutcome {
  readonly operation: Operation;
  readonly places: readonly Place[];
  readonly replies: readonly WriteReply[];
  readonly failure: StoreError | null;
}

export interface WriterOptions {
  readonly driver: SqlDriver;
  readonly statements: Statements;
  readonly reader: Reader;
  readonly announcer: Announcer;
}

export class Writer {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const [first] = writes;
    return first !== undefined && writes.length === 1 ? this.#applyOne(first) : this.#applyMany(writes);
  }

  async #applyMany(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    if (writes.length === 0) return { storeTimeMs: await this.#options.reader.now(), results: [] };
    const parts = await Promise.all(partsOf(writes).map((part) => this.#run(...part)));
    const results = new Map<number, WriteResult>();
    const times: number[] = [];
    const open: { readonly place: Place; readonly operation: Operation }[] = [];
    for (const { operation, places, replies, failure } of parts) {
      if (replies[0] !== undefined) times.push(replies[0].timeMs);
      const versions = versionsOf(places, replies);
      for (const place of places) {
        const version = versions.get(keyId(place.write.key));
        if (failure !== null) results.set(place.index, { kind: "unknown", cause: failure });
        else if (version === undefined) open.push({ place, operation });
        else results.set(place.index, appliedAs(operation, version));
      }
    }
    assertSomethingDone(parts);
    if (open.length > 0) times.push(await this.#settle(open, results));
    return {
      storeTimeMs: Math.max(...times),
      results: writes.map((_, index) => results.get(index) ?? unanswered()),
    };
  }

  /** The same for a lone write, which is the usual case and waits for nobody. */
  async #applyOne(write: ConditionalWrite): Promise<ApplyReply> {
    const operation = operationOf(write);
    if (operation !== "check") {
      const [reply] = await this.#send(operation, [write]);
      if (reply !== undefined)
        return { storeTimeMs: reply.timeMs, results: [appliedAs(operation, reply.version)] };
    }
    const results = new Map<number, WriteResult>();
    const storeTimeMs = await this.#settle([{ place: { index: 0, write }, operation }], results);
    return { storeTimeMs, results: [results.get(0) ?? unanswered()] };
  }

  async #run(operation: Operation, places: readonly Place[]): Promise<PartOutcome> {
    if (operation === "check") return { operation, places, replies: [], failure: null };
    try {
      const writes = places.map(({ write }) => write);
      return { operation, places, replies: await this.#send(operation, writes), failure: null };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return { operation, places, replies: [], failure: error };
    }
  }

  /** Writes of one kind, and behind them the news, if anybody listens. One reply for each that was done. */
  async #send(
    operation: WriteOperation,
    writes: readonly ConditionalWrite[],
  ): Promise<readonly WriteReply[]> {
    const { announcer, driver, statements } = this.#options;
    const [statement, values] = callOf(operation, writes, statements);
    let replies: readonly WriteReply[] = [];
    try {
      await driver.query(statement, values, (rows) => {
        replies = rows.map(writeReplyFrom);
        return replies[0]?.watched ? announcer.afterWrite(idsOf(replies, writes)) : null;
      });
      return replies;
    } catch (error) {
      if (error instanceof StoreError && error.outcome === "unknown")
        announcer.keep(writes.map(({ key }) => keyId(key)));
      throw error;
    }
  }

  /** What is current where a write was not done; the store's time of that look. */
  async #settle(
    open: readonly { readonly place: Place; readonly operation: Operation }[],
    results: Map<number, WriteResult>,
  ): Promise<number> {
    try {
      const reply = await this.#options.reader.read(open.map(({ place }) => place.write.key));
      for (const [position, { place, operation }] of open.entries()) {
        const current = reply.records[position];
        if (current === undefined) continue;
        const done = operation === "check" && current.kind === "absent";
        results.set(place.index, done ? { kind: "applied", version: null } : { kind: "conflict", current });
      }
      return reply.storeTimeMs ?? Number.NEGATIVE_INFINITY;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      // None of these was done. With others that were, or may have been, that can only be told as unknown.
      if (results.size === 0)
        throw new StoreError(error.kind, error.message, { outcome: "not-applied", cause: error });
      for (const { place } of open) results.set(place.index, { kind: "unknown", cause: error });
      return Number.NEGATIVE_INFINITY;
    }
  }
}

function appliedAs(operation: Operation, version: string): WriteResult {
  return { kind: "applied", version: operation === "delete" ? null : version };
}

/** The answer to a lone write does not repeat its key. */
function idsOf(replies: readonly WriteReply[], writes: readonly ConditionalWrite[]): string[] {
  return writes.length === 1 ? writes.map(({ key }) => keyId(key)) : replies.map(({ id }) => id);
}

function versionsOf(places: readonly Place[], replies: readonly WriteReply[]): Map<string, string> {
  const ids = idsOf(
    replies,
    places.map(({ write }) => write),
  );
  return new Map(replies.map(({ version }, index) => [ids[index] ?? "", version]));
}

function operationOf({ expected, next }: ConditionalWrite): Operation {
  if (expected === null) return next === null ? "check" : "insert";
  return next === null ? "delete" : "update";
}

function partsOf(writes: readonly ConditionalWrite[]): [Operation, Place[]][] {
  const parts = new Map<Operation, Place[]>();
  for (const [index, write] of writes.entries()) {
    const operation = operationOf(write);
    const places = parts.get(operation);
    if (places === undefined) parts.set(operation, [{ index, write }]);
    else places.push({ index, write });
  }
  return [...parts];
}

/** A lone write goes as a plain statement: the form for many costs it a fifth of its speed. */
function callOf(
  operation: WriteOperation,
  writes: readonly ConditionalWrite[],
  statements: Statements,
): readonly [Statement, Values] {
  const [only] = writes;
  if (only !== undefined && writes.length === 1) return [statements[`${operation}One`], valuesOf(only)];
  return [statements[`${operation}Many`], [rowsLiteral(writes.map(valuesOf))]];
}

function valuesOf({ key, expected, next }: ConditionalWrite): (string | null)[] {
  const values = next === null ? [key.tenant, key.name] : columnValues(next);
  if (expected !== null) values.push(UUID.test(expected) ? expected : NO_VERSION);
  return values;
}

function assertSomethingDone(parts: readonly PartOutcome[]): void {
  const failures = parts.flatMap(({ failure }) => failure ?? []);
  const [first] = failures;
  if (first === undefined || failures.length < parts.length) return;
  throw failures.find(({ outcome }) => outcome === "unknown") ?? first;
}

function unanswered(): WriteResult {
  return { kind: "unknown", cause: new Error("the store gave no answer for this write") };
}
