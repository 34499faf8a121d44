/**
 * The short way into a trail, for events as the service makes them: every field of its type and within its
 * limit, no details, ASCII without anything that JSON has to escape. Such an event is written at once, as the bytes
 * of its line, without the frozen copy that the gate makes of it and without a text that would only be taken apart
 * again. Everything else takes the gate: this never repairs and never refuses.
 *
 * Promised, and held by a property test: where this gives a text, the gate and the encoder give the same.
 * Every field is read once, so what was checked is what is written.
 *
 * What an event says of its decision is the same for thousands of them, and so is its purpose: those parts are kept as
 * bytes, a few of them, and copied.
 */
import { writeDecimal } from "../../stores/support/decimal.ts";
import type { AuditEvent } from "./event.ts";
import { TEXT_LIMITS } from "./event.ts";

const FIELDS: ReadonlySet<string> = new Set(
  "at tenant key leaseId action allowed reason reasonCode holder fence purpose traceId outcome".split(" "),
);
const FENCE_DIGITS = 39;
/** How many parts of a kind are kept: there are about ten actions and reasons, and three purposes. */
const MOST_PARTS = 32;

const LABELS = {
  at: bytesOf('"at":'),
  tenant: bytesOf(',"tenant":"'),
  key: bytesOf('","key":"'),
  leaseId: bytesOf('","leaseId":"'),
  action: bytesOf('","action":"'),
  allowed: bytesOf('","allowed":true,"reason":"'),
  notAllowed: bytesOf('","allowed":false,"reason":"'),
  reasonCode: bytesOf('","reasonCode":'),
  holder: bytesOf(',"holder":"'),
  fence: bytesOf(',"fence":"'),
  purpose: bytesOf(',"purpose":"'),
  traceId: bytesOf(',"traceId":"'),
} as const;

const OUTCOMES: ReadonlyMap<unknown, Uint8Array> = new Map(
  ["applied", "refused", "unknown", "none"].map((outcome) => [outcome, bytesOf(`","outcome":"${outcome}"`)]),
);

/** No plain event takes more bytes: all texts as long as they may be, the longest numbers, and the labels. */
export const MOST_PLAIN_BYTES = 4_096;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const TILDE = 0x7e;
const ZERO = 0x30;
const NINE = 0x39;

/** Not plain: the gate has to look at it. */
export const NOT_PLAIN = -1;

/** Writes the event's part of a line and returns where it ends, or NOT_PLAIN. There is room for MOST_PLAIN_BYTES. */
export function writePlainEvent(event: AuditEvent, page: Uint8Array, start: number): number {
  if (typeof event !== "object" || event === null) return NOT_PLAIN;
  for (const field in event) if (!FIELDS.has(field)) return NOT_PLAIN;
  const { at, tenant, key, leaseId, action, allowed, reason, reasonCode } = event;
  const { holder, fence, purpose, traceId, outcome, detail } = event;
  const judgement = judgementOf(action, allowed, reason, reasonCode);
  const ending = OUTCOMES.get(outcome);
  if (judgement === null || ending === undefined || detail !== undefined || !isCount(at)) return NOT_PLAIN;
  let end = writeDecimal(at, page, writeLabel(page, start, LABELS.at));
  end = writeText(page, writeLabel(page, end, LABELS.tenant), tenant, TEXT_LIMITS.tenant);
  if (end >= 0) end = writeText(page, writeLabel(page, end, LABELS.key), key, TEXT_LIMITS.key);
  if (end >= 0) end = writeText(page, writeLabel(page, end, LABELS.leaseId), leaseId, TEXT_LIMITS.leaseId);
  if (end >= 0) end = writePart(page, end, judgement);
  if (end >= 0 && holder !== undefined)
    end = writeQuoted(page, writeLabel(page, end, LABELS.holder), holder, TEXT_LIMITS.holder);
  if (end >= 0 && fence !== undefined) end = writeFence(page, writeLabel(page, end, LABELS.fence), fence);
  const meant = purpose === undefined ? LABELS.traceId : purposeOf(purpose);
  if (meant === null || end < 0) return NOT_PLAIN;
  end = writeText(page, writePart(page, end, meant), traceId, TEXT_LIMITS.traceId);
  return end < 0 ? NOT_PLAIN : writePart(page, end, ending);
}

interface Judgement {
  readonly action: string;
  readonly allowed: boolean;
  readonly reason: string;
  readonly reasonCode: number;
  readonly bytes: Uint8Array;
}

/** By the action, or by the reason why it was not allowed. */
const judgements = new Map<string, Judgement>();

/** What was decided: from the action up to the code of the reason. Null when that is not plain. */
function judgementOf(
  action: string,
  allowed: boolean,
  reason: string,
  reasonCode: number,
): Uint8Array | null {
  const id = allowed ? action : reason;
  const known = judgements.get(id);
  if (
    known !== undefined &&
    known.action === action &&
    known.allowed === allowed &&
    known.reason === reason &&
    known.reasonCode === reasonCode
  )
    return known.bytes;
  if (typeof allowed !== "boolean" || !isCount(reasonCode) || action === "" || reason === "") return null;
  const part = new Uint8Array(MOST_PLAIN_BYTES);
  let end = writeText(part, writeLabel(part, 0, LABELS.action), action, TEXT_LIMITS.action);
  const judged = allowed ? LABELS.allowed : LABELS.notAllowed;
  if (end >= 0) end = writeText(part, writeLabel(part, end, judged), reason, TEXT_LIMITS.reason);
  if (end < 0) return null;
  const bytes = part.slice(0, writeDecimal(reasonCode, part, writeLabel(part, end, LABELS.reasonCode)));
  remember(judgements, id, { action, allowed, reason, reasonCode, bytes });
  return bytes;
}

const purposes = new Map<string, Uint8Array>();

/** The purpose, up to the trace. Null when that is not plain. */
function purposeOf(purpose: string): Uint8Array | null {
  const known = purposes.get(purpose);
  if (known !== undefined) return known;
  const part = new Uint8Array(MOST_PLAIN_BYTES);
  const end = writeQuoted(part, writeLabel(part, 0, LABELS.purpose), purpose, TEXT_LIMITS.purpose);
  if (end < 0) return null;
  const bytes = part.slice(0, writeLabel(part, end, LABELS.traceId));
  remember(purposes, purpose, bytes);
  return bytes;
}

/** Whoever makes up ever new actions or purposes does not fill the memory with them. */
function remember<Part>(parts: Map<string, Part>, id: string, part: Part): void {
  if (parts.size >= MOST_PARTS) parts.clear();
  parts.set(id, part);
}

function writePart(page: Uint8Array, start: number, part: Uint8Array): number {
  page.set(part, start);
  return start + part.length;
}

/** Where a text is wanted: bytes are read back from here. */
const scratch = Buffer.allocUnsafeSlow(MOST_PLAIN_BYTES);

/** The event's part of a line as a text, or null when the gate has to look at it. */
export function encodePlainEvent(event: AuditEvent): string | null {
  const end = writePlainEvent(event, scratch, 0);
  return end < 0 ? null : scratch.toString("latin1", 0, end);
}

function bytesOf(label: string): Uint8Array {
  return new Uint8Array(Buffer.from(label, "latin1"));
}

function writeLabel(page: Uint8Array, start: number, label: Uint8Array): number {
  const { length } = label;
  for (let index = 0; index < length; index += 1) page[start + index] = label[index] ?? 0;
  return start + length;
}

/** Without quotes, backslashes and control characters, and nothing but ASCII: one byte for each. */
function writeText(page: Uint8Array, start: number, text: unknown, limit: number): number {
  if (typeof text !== "string" || text.length > limit) return NOT_PLAIN;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < SPACE || unit > TILDE || unit === QUOTE || unit === BACKSLASH) return NOT_PLAIN;
    page[start + index] = unit;
  }
  return start + text.length;
}

function writeQuoted(page: Uint8Array, start: number, text: unknown, limit: number): number {
  const end = writeText(page, start, text, limit);
  if (end < 0) return NOT_PLAIN;
  page[end] = QUOTE;
  return end + 1;
}

function writeFence(page: Uint8Array, start: number, fence: unknown): number {
  const end = writeQuoted(page, start, fence, FENCE_DIGITS);
  if (end === start + 1) return NOT_PLAIN;
  for (let index = start; index < end - 1; index += 1) {
    const unit = page[index] ?? 0;
    if (unit < ZERO || unit > NINE) return NOT_PLAIN;
  }
  return end;
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
