/**
 * The one interface of every audit sink, and what a question to it looks like. A trail promises that
 * entries come out in the order in which they were appended, chained; what survives a crash is each
 * sink's own promise.
 */

import type { StoreNote } from "../../store/index.ts";
import { encodeEvent } from "./chain.ts";
import { AuditError } from "./error.ts";
import type { AuditEntry, AuditEvent, AuditHead } from "./event.ts";
import { encodePlainEvent, NOT_PLAIN, writePlainEvent } from "./plain.ts";
import { checkAuditEvent, sanitiseAuditEvent } from "./validate.ts";

export interface AuditTrail {
  /** Where this returns a promise, the event is as safe as the sink makes it once that resolves. */
  append(event: AuditEvent): void | Promise<void>;
  /**
   * `append` for who appends thousands a second: calls back once, with null when the event is as safe as the sink
   * makes it, else with what went wrong; perhaps before this returns. `settled` must not throw, nor does this.
   */
  appendThen?(event: AuditEvent, settled: (failure: unknown) => void): void;
  /**
   * Something is about to be appended that belongs to what was appended just now: until it is let go, a sink that
   * has little else to do waits, and makes both safe in one step. Whoever holds must let go within moments,
   * whatever happens; letting go twice is fine.
   */
  hold?(): () => void;
  /** Where a store can write events beside the records that they are about. */
  readonly notes?: AuditNotes | null;
  /** Resolves when everything appended before is as safe as the sink makes it. */
  flush(): Promise<void>;
  /** The last entry that is safe. Keep copies of it elsewhere: they are what rewriting cannot reach. */
  head(): AuditHead;
  query(query?: AuditQuery): Promise<readonly AuditEntry[]>;
  close(): Promise<void>;
}

/** Events on their way into a trail by way of a store. None of these throws. */
export interface AuditNotes {
  /**
   * A note of these events, for the store to write in the same step as a record; null when they have to be appended
   * instead. Whoever gets one says what became of it, with `keep` or `drop`.
   */
  make(events: readonly AuditEvent[]): StoreNote | null;
  /** The note of these events was written: they are safe, and enter the trail without anybody waiting. */
  keep(note: StoreNote, events: readonly AuditEvent[]): void;
  /** The note was not written, or its events are appended in another way. */
  drop(note: StoreNote): void;
}

/** By the way that a trail has: calls back once, as `appendThen` does. */
export function appendTo(audit: AuditTrail, event: AuditEvent, settled: (failure: unknown) => void): void {
  if (audit.appendThen !== undefined) {
    audit.appendThen(event, settled);
    return;
  }
  try {
    const safe = audit.append(event);
    if (safe === undefined) settled(null);
    else safe.then(() => settled(null), settled);
  } catch (failure) {
    settled(failure);
  }
}

/** Every field given must match. */
export interface AuditFilter {
  readonly afterSequence?: number;
  readonly key?: string;
  readonly tenant?: string;
  readonly holder?: string;
  readonly action?: string;
}

export interface AuditQuery extends AuditFilter {
  /** At most this many: the first ones, or the last ones with "newest-first". Default 100, at most 10,000. */
  readonly limit?: number;
  readonly order?: "oldest-first" | "newest-first";
}

/** What a trail does with an event that breaks a limit: see `checkAuditEvent`, `sanitiseAuditEvent`. */
export type InvalidEvents = "refuse" | "sanitise";

export const QUERY_LIMITS = { standard: 100, most: 10_000 } as const;

const EXACT_FIELDS = ["key", "tenant", "holder", "action"] as const;

export function acceptEvent(event: AuditEvent, invalidEvents: InvalidEvents): AuditEvent {
  return invalidEvents === "sanitise" ? sanitiseAuditEvent(event) : checkAuditEvent(event);
}

/** The event's part of a line. Throws on a malformed event where those are refused. */
export function encodeAccepted(event: AuditEvent, invalidEvents: InvalidEvents): string {
  return plainText(event) ?? encodeEvent(acceptEvent(event, invalidEvents));
}

/** A getter or a proxy that throws is for the gate to deal with. */
function plainText(event: AuditEvent): string | null {
  try {
    return encodePlainEvent(event);
  } catch {
    return null;
  }
}

/** Writes what `encodeAccepted` gives and returns where it ends; NOT_PLAIN where that has to look at the event. */
export function writePlain(event: AuditEvent, page: Uint8Array, start: number): number {
  try {
    return writePlainEvent(event, page, start);
  } catch {
    return NOT_PLAIN;
  }
}

export function matches(event: AuditEvent, sequence: number, filter: AuditFilter): boolean {
  if (filter.afterSequence !== undefined && sequence <= filter.afterSequence) return false;
  return EXACT_FIELDS.every((field) => filter[field] === undefined || event[field] === filter[field]);
}

/** What the line of a matching entry must contain, so that most lines are passed over without parsing. */
export function linePatterns(filter: AuditFilter): readonly Buffer[] {
  return EXACT_FIELDS.flatMap((field) => {
    const value = filter[field];
    return value === undefined ? [] : [Buffer.from(`"${field}":${JSON.stringify(value)}`)];
  });
}

export function queryLimit(query: AuditQuery): number {
  const limit = query.limit ?? QUERY_LIMITS.standard;
  return checkCount("limit", limit, { least: 1, most: QUERY_LIMITS.most });
}

export function checkCount(name: string, value: number, range: { least: number; most: number }): number {
  if (Number.isSafeInteger(value) && value >= range.least && value <= range.most) return value;
  const fix = `must be a whole number from ${range.least} to ${range.most}`;
  throw new AuditError("AUDIT_OPTION_INVALID", `${name} ${fix}; got ${String(value)}`);
}
