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
import { type FollowUp, type Row, type SqlDriver, textOf, type Values } from "./driver.ts";
import { type Reader, timeOf } from "./reader.ts";
import { columnLiterals } from "./sql-text.ts";
import type { Statement, Statements } from "./statements.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A version that no row has, for those that this store never gave out. */
const NO_VERSION = "00000000-0000-0000-0000-000000000000";

type Operation = "insert" | "update" | "delete" | "check";

interface Place {
  readonly index: number;
  readonly write: ConditionalWrite;
}

/** A part of a batch, and what became of it. */
interface PartOutcome {
  readonly operation: Operation;
  readonly places: readonly Place[];
  readonly rows: readonly Row[];
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

  async apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    if (writes.length === 0) return { storeTimeMs: await this.#options.reader.now(), results: [] };
    const parts = await Promise.all(partsOf(writes).map((part) => this.#run(...part)));
    const results = new Map<number, WriteResult>();
    const times: number[] = [];
    const open: { readonly place: Place; readonly operation: Operation }[] = [];
    for (const { operation, places, rows, failure } of parts) {
      if (rows[0] !== undefined) times.push(timeOf(rows[0]));
      const versions = new Map(rows.map((row) => [textOf(row, "id"), textOf(row, "version")]));
      for (const place of places) {
        const version = versions.get(keyId(place.write.key));
        if (failure !== null) results.set(place.index, { kind: "unknown", cause: failure });
        else if (version === undefined) open.push({ place, operation });
        else results.set(place.index, { kind: "applied", version: operation === "delete" ? null : version });
      }
    }
    assertSomethingDone(parts);
    if (open.length > 0) times.push(await this.#settle(open, results));
    return {
      storeTimeMs: Math.max(...times),
      results: writes.map((_, index) => results.get(index) ?? unanswered()),
    };
  }

  async #run(operation: Operation, places: readonly Place[]): Promise<PartOutcome> {
    const { announcer, driver, statements } = this.#options;
    if (operation === "check") return { operation, places, rows: [], failure: null };
    const [statement, values] = callOf(operation, places, statements);
    try {
      const rows = await driver.query(statement, values, (reply) => this.#announcementOf(reply));
      return { operation, places, rows, failure: null };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (error.outcome === "unknown") announcer.keep(places.map(({ write }) => keyId(write.key)));
      return { operation, places, rows: [], failure: error };
    }
  }

  #announcementOf(rows: readonly Row[]): FollowUp | null {
    if (textOf(rows[0], "watched") !== "true") return null;
    return this.#options.announcer.afterWrite(rows.map((row) => textOf(row, "id") ?? ""));
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
  operation: Exclude<Operation, "check">,
  places: readonly Place[],
  statements: Statements,
): readonly [Statement, Values] {
  const rows = places.map(({ write }) => valuesOf(write));
  const [only, second] = rows;
  if (only !== undefined && second === undefined) return [statements[`${operation}One`], only];
  return [statements[`${operation}Many`], columnLiterals(rows)];
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
