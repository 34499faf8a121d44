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

type TextField = keyof typeof TEXT_LIMITS;
type Source = Readonly<Record<string, unknown>>;

/** Called for each field that does not fit. It throws, or takes a note and lets the repair happen. */
type OnProblem = (field: string, fix: string, shown: string) => void;

const KNOWN_FIELDS: ReadonlySet<string> = new Set(
  "at tenant key leaseId action allowed reason reasonCode code holder fence purpose caller address traceId outcome detail".split(
    " ",
  ),
);
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
    if (!KNOWN_FIELDS.has(field))
      onProblem(cut(field, 64), "is not a field of an audit event: remove it", "a value");
  }
  const code = optionalText(source, "code", onProblem);
  const holder = optionalText(source, "holder", onProblem);
  const fence = optionalFence(source.fence, onProblem);
  const purpose = optionalText(source, "purpose", onProblem);
  const caller = optionalText(source, "caller", onProblem);
  const address = optionalText(source, "address", onProblem);
  const detail = optionalDetail(source.detail, onProblem);
  const event: AuditEvent = {
    at: count(source, "at", onProblem),
    tenant: text(source, "tenant", onProblem),
    key: text(source, "key", onProblem),
    leaseId: text(source, "leaseId", onProblem),
    action: name(source, "action", onProblem),
    allowed: flag(source.allowed, onProblem),
    reason: name(source, "reason", onProblem),
    reasonCode: count(source, "reasonCode", onProblem),
    ...(code === undefined ? undefined : { code }),
    ...(holder === undefined ? undefined : { holder }),
    ...(fence === undefined ? undefined : { fence }),
    ...(purpose === undefined ? undefined : { purpose }),
    ...(caller === undefined ? undefined : { caller }),
    ...(address === undefined ? undefined : { address }),
    traceId: text(source, "traceId", onProblem),
    outcome: outcome(source.outcome, onProblem),
    ...(detail === undefined ? undefined : { detail }),
  };
  return Object.freeze(event);
}

function text(source: Source, field: TextField, onProblem: OnProblem): string {
  const value = source[field];
  const limit = TEXT_LIMITS[field];
  if (typeof value === "string" && value.length <= limit) return value;
  onProblem(field, `must be a string of at most ${limit} characters`, show(value));
  return cut(plain(value), limit);
}

function optionalText(source: Source, field: TextField, onProblem: OnProblem): string | undefined {
  return source[field] === undefined ? undefined : text(source, field, onProblem);
}

/** A text that says what kind of event this is, so it cannot be empty. */
function name(source: Source, field: TextField, onProblem: OnProblem): string {
  const value = text(source, field, onProblem);
  if (value !== "") return value;
  onProblem(field, "must not be empty", '""');
  return UNNAMED;
}

function count(source: Source, field: "at" | "reasonCode", onProblem: OnProblem): number {
  const value = source[field];
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  onProblem(field, "must be a whole number from 0 to 2^53-1", show(value));
  const rounded = typeof value === "number" ? Math.trunc(value) : 0;
  return Number.isSafeInteger(rounded) && rounded > 0 ? rounded : 0;
}

function flag(value: unknown, onProblem: OnProblem): boolean {
  if (typeof value === "boolean") return value;
  onProblem("allowed", "must be true or false", show(value));
  return false;
}

function outcome(value: unknown, onProblem: OnProblem): AuditOutcome {
  const known = AUDIT_OUTCOMES.find((candidate) => candidate === value);
  if (known !== undefined) return known;
  onProblem("outcome", `must be one of ${AUDIT_OUTCOMES.join(", ")}`, show(value));
  return "unknown";
}

function optionalFence(value: unknown, onProblem: OnProblem): string | undefined {
  if (value === undefined || (typeof value === "string" && DECIMAL.test(value))) return value;
  onProblem("fence", "must be a decimal string of at most 39 digits (use formatFence)", show(value));
  const digits = plain(value);
  return DECIMAL.test(digits) ? digits : undefined;
}

function optionalDetail(value: unknown, onProblem: OnProblem): AuditDetail | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    onProblem("detail", "must be an object of strings, numbers and booleans", show(value));
    return undefined;
  }
  const kept = new Map<string, string | number | boolean>();
  for (const key of Object.keys(value)) {
    if (kept.size === DETAIL_LIMITS.keys) {
      onProblem("detail", `must have at most ${DETAIL_LIMITS.keys} keys`, String(Object.keys(value).length));
      break;
    }
    if (!DETAIL_KEY.test(key)) {
      onProblem("detail", "keys must be a letter, then at most 63 letters, digits, '_', '.', '-'", show(key));
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
