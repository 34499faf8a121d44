/**
 * The gate in front of the trail. Two ways through it:
 *  - `checkAuditEvent` refuses a malformed event with an error that names the field, the value and the fix;
 *  - `sanitiseAuditEvent` never throws, whatever it is given: it cuts, replaces or leaves out what does not
 *    fit and says so in `detail.sanitised`. A service that must not fail because of its audit uses this one,
 *    so that an attempt with a hostile key is recorded rather than lost.
 *
 * Both return a fresh, frozen event with its fields in the order of the encoding. Fields that are not part
 * of an event, and details named like a secret, never get through either. What this cannot know is whether
 * a harmless looking value IS a secret: callers must not put one there.
 */

import type { AuditDetail, AuditEvent, AuditOutcome } from "./entry.ts";
import { AUDIT_OUTCOMES, DETAIL_LIMITS, TEXT_LIMITS } from "./entry.ts";
import { AuditError } from "./error.ts";

type Source = Readonly<Record<string, unknown>>;

/** Called for each field that does not fit. It throws, or takes a note and lets the repair happen. */
type OnProblem = (field: string, fix: string, shown: string) => void;

/** What is kept of a value; undefined for nothing. */
type Reader = (value: unknown, field: string, onProblem: OnProblem) => unknown;

/** In the order of the encoding. */
const FIELDS: Readonly<Record<keyof AuditEvent, Reader>> = {
  at: count,
  tenant: text,
  key: text,
  leaseId: text,
  action: name,
  allowed: flag,
  reason: name,
  reasonCode: count,
  code: text,
  holder: text,
  fence: decimal,
  purpose: text,
  caller: text,
  address: text,
  traceId: text,
  outcome,
  detail: details,
};
const OPTIONAL: ReadonlySet<string> = new Set<keyof AuditEvent>([
  ...(["code", "holder", "fence", "purpose", "caller", "address", "detail"] as const),
]);
const SECRET_NAME = /token|secret|passw|credential|authorization|cookie|bearer|private.?key|api.?key/i;
const DETAIL_KEY = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;
const DECIMAL = /^\d{1,39}$/;
const SANITISED = "sanitised";
const UNNAMED = "unnamed";

export function checkAuditEvent(event: AuditEvent): AuditEvent {
  return normalise(event as unknown as Source, (field, fix, shown) => {
    throw new AuditError("AUDIT_EVENT_INVALID", `audit event: ${field} ${fix}; got ${shown}`);
  });
}

export function sanitiseAuditEvent(event: unknown): AuditEvent {
  const repaired = new Set<string>();
  let clean: AuditEvent;
  try {
    const source = typeof event === "object" && event !== null ? (event as Source) : {};
    if (source !== event) repaired.add("event");
    clean = normalise(source, (field) => repaired.add(field));
  } catch {
    // A getter or a proxy that throws: nothing of it can be trusted, but that it happened is recorded.
    repaired.add("event");
    clean = normalise({}, (field) => repaired.add(field));
  }
  return repaired.size === 0 ? clean : mark(clean, repaired);
}

function mark(event: AuditEvent, repaired: ReadonlySet<string>): AuditEvent {
  const kept = Object.entries(event.detail ?? {}).filter(([key]) => key !== SANITISED);
  const note = cut([...repaired].join(","), DETAIL_LIMITS.valueCharacters);
  const all = [...kept.slice(0, DETAIL_LIMITS.keys - 1), [SANITISED, note] as const];
  return Object.freeze({ ...event, detail: sorted(new Map(all)) });
}

function normalise(source: Source, onProblem: OnProblem): AuditEvent {
  for (const field of Object.keys(source)) {
    // The value is not shown: this is where a token would come along.
    if (!Object.hasOwn(FIELDS, field))
      onProblem(cut(field, 64), "is not a field of an audit event: remove it", "a value");
  }
  const event: Record<string, unknown> = {};
  for (const [field, read] of Object.entries(FIELDS)) {
    const value = source[field];
    const kept = value === undefined && OPTIONAL.has(field) ? undefined : read(value, field, onProblem);
    if (kept !== undefined) event[field] = kept;
  }
  return Object.freeze(event) as unknown as AuditEvent;
}

function text(value: unknown, field: string, onProblem: OnProblem): string {
  const limit = TEXT_LIMITS[field as keyof typeof TEXT_LIMITS];
  if (typeof value === "string" && value.length <= limit) return value;
  onProblem(field, `must be a string of at most ${limit} characters`, show(value));
  return cut(plain(value), limit);
}

/** A text that says what kind of event this is, so it cannot be empty. */
function name(value: unknown, field: string, onProblem: OnProblem): string {
  const kept = text(value, field, onProblem);
  if (kept !== "") return kept;
  onProblem(field, "must not be empty", '""');
  return UNNAMED;
}

function count(value: unknown, field: string, onProblem: OnProblem): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  onProblem(field, "must be a whole number from 0 to 2^53-1", show(value));
  const rounded = typeof value === "number" ? Math.trunc(value) : 0;
  return Number.isSafeInteger(rounded) && rounded > 0 ? rounded : 0;
}

function flag(value: unknown, field: string, onProblem: OnProblem): boolean {
  if (typeof value === "boolean") return value;
  onProblem(field, "must be true or false", show(value));
  return false;
}

function outcome(value: unknown, field: string, onProblem: OnProblem): AuditOutcome {
  const known = AUDIT_OUTCOMES.find((candidate) => candidate === value);
  if (known !== undefined) return known;
  onProblem(field, `must be one of ${AUDIT_OUTCOMES.join(", ")}`, show(value));
  return "unknown";
}

function decimal(value: unknown, field: string, onProblem: OnProblem): string | undefined {
  if (typeof value === "string" && DECIMAL.test(value)) return value;
  onProblem(field, "must be a decimal string of at most 39 digits (use formatFence)", show(value));
  const digits = plain(value);
  return DECIMAL.test(digits) ? digits : undefined;
}

function details(value: unknown, field: string, onProblem: OnProblem): AuditDetail | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    onProblem(field, "must be an object of strings, numbers and booleans", show(value));
    return undefined;
  }
  const kept = new Map<string, string | number | boolean>();
  for (const key of Object.keys(value)) {
    if (kept.size === DETAIL_LIMITS.keys) {
      onProblem(field, `must have at most ${DETAIL_LIMITS.keys} keys`, String(Object.keys(value).length));
      break;
    }
    if (!DETAIL_KEY.test(key)) {
      onProblem(field, "keys must be a letter, then at most 63 letters, digits, '_', '.', '-'", show(key));
    } else if (SECRET_NAME.test(key)) {
      onProblem(`detail.${key}`, "is named like a secret and must not be kept: leave it out", "a value");
    } else {
      kept.set(key, detailValue(key, (value as Source)[key], onProblem));
    }
  }
  return sorted(kept);
}

function detailValue(key: string, value: unknown, onProblem: OnProblem): string | number | boolean {
  if (typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value))) return value;
  const limit = DETAIL_LIMITS.valueCharacters;
  if (typeof value === "string" && value.length <= limit) return value;
  const fix = `must be a boolean, a finite number or a string of at most ${limit} characters`;
  onProblem(`detail.${key}`, fix, show(value));
  return cut(plain(value), limit);
}

/** Sorted, so that one event has one encoding whatever order its details were written in. */
function sorted(detail: ReadonlyMap<string, string | number | boolean>): AuditDetail {
  const keys = [...detail.keys()].sort();
  return Object.freeze(Object.fromEntries(keys.map((key) => [key, detail.get(key) ?? ""])));
}

/** Scalars as people write them; of anything else nothing is kept. */
function plain(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "bigint" || typeof value === "boolean"
    ? String(value)
    : "";
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(cut(value, 60)) + (value.length > 60 ? "..." : "");
  return plain(value) || (value === null ? "null" : typeof value);
}

/** Never leaves half of a surrogate pair behind. */
function cut(value: string, limit: number): string {
  if (value.length <= limit) return value;
  const last = value.charCodeAt(limit - 1);
  return value.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit);
}
