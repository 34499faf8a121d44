/**
 * The one interface of every audit sink, and what a question to it looks like. A trail promises that
 * entries come out in the order in which they were appended, chained; what survives a crash is each
 * sink's own promise.
 */

import type { AuditEntry, AuditEvent, AuditHead } from "./entry.ts";
import { AuditError } from "./error.ts";
import { checkAuditEvent, sanitiseAuditEvent } from "./validate.ts";

export interface AuditTrail {
  /** Where this returns a promise, the event is as safe as the sink makes it once that resolves. */
  append(event: AuditEvent): void | Promise<void>;
  /** Resolves when everything appended before is as safe as the sink makes it. */
  flush(): Promise<void>;
  /** The last entry that is safe. Keep copies of it elsewhere: they are what rewriting cannot reach. */
  head(): AuditHead;
  query(query?: AuditQuery): Promise<readonly AuditEntry[]>;
  close(): Promise<void>;
}

/** Every field given must match. */
export interface AuditFilter {
  readonly afterSequence?: number;
  readonly key?: string;
  readonly tenant?: string;
  readonly holder?: string;
  readonly action?: string;
  readonly reason?: string;
  readonly allowed?: boolean;
  /** Not these actions: renewals are most of a long trail. */
  readonly exceptActions?: readonly string[];
  /** Not before this instant of the clock that judged the attempts. */
  readonly fromMs?: number;
  /** Not at this instant or after it. */
  readonly untilMs?: number;
  readonly caller?: string;
}

export interface AuditQuery extends AuditFilter {
  /** At most this many: the first ones, or the last ones with "newest-first". Default 100, at most 10,000. */
  readonly limit?: number;
  readonly order?: "oldest-first" | "newest-first";
}

/** What a trail does with an event that breaks a limit: see `checkAuditEvent`, `sanitiseAuditEvent`. */
export type InvalidEvents = "refuse" | "sanitise";

export const QUERY_LIMITS = { standard: 100, most: 10_000 } as const;

const EXACT_FIELDS = ["key", "tenant", "holder", "action", "reason", "allowed", "caller"] as const;

/** Throws on a malformed event where those are refused. */
export function acceptEvent(event: AuditEvent, invalidEvents: InvalidEvents): AuditEvent {
  return invalidEvents === "sanitise" ? sanitiseAuditEvent(event) : checkAuditEvent(event);
}

export function matches(entry: AuditEntry, filter: AuditFilter): boolean {
  if (filter.afterSequence !== undefined && entry.sequence <= filter.afterSequence) return false;
  return matchesEvent(entry, filter);
}

/** As `matches`, for an event that has no place in the chain yet. */
export function matchesEvent(entry: AuditEvent, filter: AuditFilter): boolean {
  const { fromMs, untilMs, exceptActions } = filter;
  if (fromMs !== undefined && entry.at < fromMs) return false;
  if (untilMs !== undefined && entry.at >= untilMs) return false;
  if (exceptActions?.includes(entry.action)) return false;
  return EXACT_FIELDS.every((field) => filter[field] === undefined || entry[field] === filter[field]);
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
