/**
 * Conditional writes: a lone one as a plain statement; of a batch the creations and updates as one upsert, the
 * deletes as another statement, then one read for those that found another version.
 *
 * When one statement of a call fails and another does not, the writes of the failed one are answered as
 * unknown each; when nothing was done the call rejects.
 */
import type { Env } from "../../env/index.ts";
import { type ApplyReply, type ConditionalWrite, StoreError, type WriteResult } from "../../store/index.ts";
import { ToldTime } from "../support/told-time.ts";
import type { Announcer } from "./announcer.ts";
import type { FollowUp, Row, SqlDriver, Values } from "./driver.ts";
import { isVanishedRow } from "./failures.ts";
import { endToTell, type Form, type LoneWrite, loneWriteOf } from "./lone-write.ts";
import { type News, payloadOf } from "./payloads.ts";
import type { KnownRows } from "./plain-ends.ts";
import type { Reader } from "./reader.ts";
import { isWatched, replyIdFrom, type WriteReply, writeReplyFrom } from "./replies.ts";
import { rowsLiteral } from "./sql-text.ts";
import type { Statement, Statements } from "./statements.ts";
import { Versions } from "./versions.ts";
import {
  appliedAs,
  isGivenBack,
  newsOf,
  operationOf,
  type Place,
  partsOf,
  placeOf,
  rowOf,
} from "./writes.ts";

/** What became of some writes. Without a failure, those without a reply were not done and never will be. */
interface Sent {
  readonly places: readonly Place[];
  /** By the ids of their keys, those that were done. */
  readonly replies: ReadonlyMap<string, WriteReply>;
  readonly failure: StoreError | null;
}

type Results = (WriteResult | undefined)[];

export interface WriterOptions {
  readonly env: Env;
  readonly driver: SqlDriver;
  readonly statements: Statements;
  readonly known: KnownRows;
  readonly reader: Reader;
  readonly announcer: Announcer;
  /** Whether ends may be seen before they are safe: the server tells when they are. */
  readonly early: "yes" | "no";
}

const NONE: ReadonlyMap<string, WriteReply> = new Map();

export class Writer {
  readonly #options: WriterOptions;
  readonly #versions: Versions;
  readonly #time: ToldTime;
  /** Whether anybody listened when something was written last. */
  #isWatched = false;
  /** Whether a lone write may be sent in the hope that nobody does. */
  #isCalm = false;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#versions = new Versions(options.env);
    this.#time = new ToldTime(options.env);
  }

  apply(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    const [first] = writes;
    return first !== undefined && writes.length === 1 ? this.#applyOne(first) : this.#applyMany(writes);
  }

  /** A lone write is the usual case: it waits for nobody, and takes few steps. */
  #applyOne(write: ConditionalWrite): Promise<ApplyReply> {
    const place = placeOf(write, 0);
    if (this.#isCalm && write.next !== null && this.#time.isFresh) return this.#applyUnheard(place);
    return this.#applyTold(place);
  }

  /**
   * What was found a moment ago probably still is: nobody listens, and the time is known. If it is not done, it may
   * be for another reason, which the usual statement tells.
   */
  #applyUnheard(place: Place): Promise<ApplyReply> {
    const { driver, announcer } = this.#options;
    const lone = this.#loneWrite(place, "unheard");
    if (lone === null || lone instanceof Error) return this.#applyTold(place);
    return driver.query(lone.statement, lone.values).then(
      ({ length }) => {
        if (length > 0) return { storeTimeMs: null, results: [this.#applied(place, lone.version)] };
        this.#isCalm = false;
        return this.#applyTold(place);
      },
      (error: unknown) => {
        if (isUnknown(error)) announcer.keep([place.id]);
        throw error;
      },
    );
  }

  #applyTold(place: Place): Promise<ApplyReply> {
    const sentMs = this.#options.env.monotonicMs();
    const sending = this.#sendOne(place);
    if (sending === null) return this.#settleOne(place);
    return sending.then((reply) => {
      if (reply === null) return this.#settleOne(place);
      this.#time.told(sentMs);
      return { storeTimeMs: reply.timeMs, results: [this.#applied(place, reply.version)] };
    });
  }

  #applied({ write }: Place, version: string): WriteResult {
    if (write.next !== null) this.#options.known.note(write.key, version, write.next);
    return appliedAs(write, version);
  }

  async #settleOne(place: Place): Promise<ApplyReply> {
    const results: Results = [];
    const storeTimeMs = await this.#settle([place], results);
    return { storeTimeMs, results: [results[0] ?? unanswered()] };
  }

  async #applyMany(writes: readonly ConditionalWrite[]): Promise<ApplyReply> {
    if (writes.length === 0) return { storeTimeMs: await this.#options.reader.now(), results: [] };
    const { upserts, deletes, checks } = partsOf(writes);
    const sending: Promise<Sent>[] = [];
    if (upserts.length > 0) sending.push(this.#upsert(upserts));
    if (deletes.length > 0) sending.push(this.#sendAll(this.#options.statements.deleteMany, deletes));
    const parts = await Promise.all(sending);
    assertSomethingDone(parts, checks.length);
    const results: Results = new Array(writes.length).fill(undefined);
    const open = [...checks];
    let timeMs = Number.NEGATIVE_INFINITY;
    for (const { places, replies, failure } of parts) {
      for (const place of places) {
        const reply = replies.get(place.id);
        if (reply !== undefined) {
          results[place.index] = appliedAs(place.write, reply.version);
          timeMs = Math.max(timeMs, reply.timeMs);
        } else if (failure !== null) results[place.index] = { kind: "unknown", cause: failure };
        else open.push(place);
      }
    }
    if (open.length > 0) timeMs = Math.max(timeMs, await this.#settle(open, results));
    return { storeTimeMs: timeMs, results: results.map((result) => result ?? unanswered()) };
  }

  /** Creations and updates, in order of key. */
  async #upsert(places: readonly Place[]): Promise<Sent> {
    const { upsertMany } = this.#options.statements;
    const sent = await this.#sendAll(upsertMany, places);
    if (!isVanishedRow(sent.failure)) return sent;
    // Nothing was done: rows are gone that were to be changed. Those writes can never be done; the others can.
    const hopeful = await this.#hopefulOf(places);
    if (hopeful instanceof StoreError) return { places, replies: NONE, failure: hopeful };
    let again = await this.#sendAll(upsertMany, hopeful);
    // Meanwhile one more has gone. Alone, a write cannot fail another one.
    if (isVanishedRow(again.failure)) again = await this.#sendEach(hopeful);
    return { ...again, places };
  }

  /** The creations, and the updates that still find what they expect. */
  async #hopefulOf(places: readonly Place[]): Promise<readonly Place[] | StoreError> {
    const updates = places.filter(({ write }) => write.expected !== null);
    try {
      const { records } = await this.#options.reader.read(updates.map(({ write }) => write.key));
      const stale = new Set(
        updates.filter(({ write }, position) => {
          const stored = records[position];
          return stored === undefined || stored.kind === "absent" || stored.version !== write.expected;
        }),
      );
      return places.filter((place) => !stale.has(place));
    } catch (error) {
      return notApplied(error);
    }
  }

  async #sendAll(statement: Statement, places: readonly Place[]): Promise<Sent> {
    if (places.length <= 1) return this.#sendEach(places);
    try {
      const values = [rowsLiteral(places.map(({ write }) => rowOf(write)))];
      const rows = await this.#send(statement, values, places, (done) => newsOfMany(places, done));
      const replies = new Map(rows.map((row) => [replyIdFrom(row), writeReplyFrom(row)]));
      return { places, replies, failure: null };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return { places, replies: NONE, failure: error };
    }
  }

  async #sendEach(places: readonly Place[]): Promise<Sent> {
    const replies = new Map<string, WriteReply>();
    const failures: StoreError[] = [];
    const send = async (place: Place): Promise<void> => {
      try {
        const reply = await this.#sendOne(place);
        if (reply !== null) replies.set(place.id, reply);
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        failures.push(error);
      }
    };
    await Promise.all(places.map(send));
    return { places, replies, failure: worstOf(failures) };
  }

  /** Null when there is nothing to send; resolves with null when it was not done. */
  #sendOne(place: Place): Promise<WriteReply | null> | null {
    const form = this.#formOf(place.write);
    const lone = this.#loneWrite(place, form);
    if (lone === null) return null;
    if (lone instanceof Error) return Promise.reject(lone);
    const { statement, values, version } = lone;
    const newsOfDone = (): News[] => [newsOf(place, endToTell(lone, place.id))];
    const answer =
      form === "early"
        ? this.#sendEarly(statement, [...values, payloadOf(newsOfDone())], place)
        : this.#send(statement, values, [place], newsOfDone);
    return answer.then(([row]) => (row === undefined ? null : writeReplyFrom(row, version)));
  }

  #formOf(write: ConditionalWrite): Form {
    const { early, announcer } = this.#options;
    const isWaitedFor = this.#isWatched && isGivenBack(write);
    return early === "yes" && isWaitedFor && !announcer.hasKept ? "early" : "told";
  }

  #loneWrite({ write }: Place, form: Form): LoneWrite | Error | null {
    try {
      return loneWriteOf(write, form, this.#versions.next(), this.#options.statements);
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  /** Runs a statement that tells its news by itself. */
  async #sendEarly(statement: Statement, values: Values, { id }: Place): Promise<readonly Row[]> {
    const { announcer, driver } = this.#options;
    try {
      const rows = await driver.query(statement, values);
      const [first] = rows;
      if (first !== undefined) this.#note(first);
      return rows;
    } catch (error) {
      if (isUnknown(error)) announcer.keep([id]);
      throw error;
    }
  }

  /** Runs a statement, and behind it the news of what was done, if anybody listens. */
  #send(
    statement: Statement,
    values: Values,
    places: readonly Place[],
    newsOfDone: (done: readonly Row[]) => readonly News[],
  ): Promise<readonly Row[]> {
    const { announcer, driver } = this.#options;
    const newsAfter = (rows: readonly Row[]): FollowUp | null => {
      const [first] = rows;
      if (first === undefined) return null;
      this.#note(first);
      return this.#isWatched ? announcer.afterWrite(() => newsOfDone(rows), paceOf(places)) : null;
    };
    return driver.query(statement, values, newsAfter).catch((error: unknown) => {
      if (isUnknown(error)) announcer.keep(places.map(({ id }) => id));
      throw error;
    });
  }

  #note(row: Row): void {
    this.#isWatched = isWatched(row);
    this.#isCalm = !this.#isWatched && this.#options.driver.counts === "yes";
  }

  /** What is current where a write was not done; the store's time of that look. */
  async #settle(open: readonly Place[], results: Results): Promise<number> {
    try {
      const reply = await this.#options.reader.read(open.map(({ write }) => write.key));
      for (const [position, { index, write }] of open.entries()) {
        const current = reply.records[position];
        if (current === undefined) continue;
        const done = operationOf(write) === "check" && current.kind === "absent";
        results[index] = done ? { kind: "applied", version: null } : { kind: "conflict", current };
      }
      return reply.storeTimeMs ?? Number.NEGATIVE_INFINITY;
    } catch (error) {
      const cause = notApplied(error);
      // None of these was done. With others that were, or may have been, that can only be told as unknown.
      if (results.every((result) => result === undefined)) throw cause;
      for (const { index } of open) results[index] = { kind: "unknown", cause };
      return Number.NEGATIVE_INFINITY;
    }
  }
}

/** Somebody may wait for a key that is free now. */
function paceOf(places: readonly Place[]): FollowUp["pace"] {
  return places.every(({ write }) => write.next?.state === "held") ? "soon" : "now";
}

/** Of a batch what was done is told, by the ids in its answer. */
function newsOfMany(places: readonly Place[], rows: readonly Row[]): News[] {
  const done = new Set(rows.map(replyIdFrom));
  return places.flatMap((place) => (done.has(place.id) ? newsOf(place, null) : []));
}

function isUnknown(error: unknown): boolean {
  return error instanceof StoreError && error.outcome === "unknown";
}

/** A look that failed: of what it was for, nothing was done. */
function notApplied(error: unknown): StoreError {
  if (!(error instanceof StoreError)) throw error;
  return new StoreError(error.kind, error.message, { outcome: "not-applied", cause: error });
}

function worstOf(failures: readonly StoreError[]): StoreError | null {
  return failures.find(({ outcome }) => outcome === "unknown") ?? failures[0] ?? null;
}

/** When every part failed and nothing of it was done, that is the answer to the whole call. */
function assertSomethingDone(parts: readonly Sent[], checks: number): void {
  const failures = parts.flatMap(({ failure, replies }) => (replies.size > 0 ? [] : (failure ?? [])));
  const worst = worstOf(failures);
  if (worst !== null && checks === 0 && failures.length === parts.length) throw worst;
}

function unanswered(): WriteResult {
  return { kind: "unknown", cause: new Error("the store gave no answer for this write") };
}
