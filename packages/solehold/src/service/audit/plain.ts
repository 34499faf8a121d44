/**
 * The short way into a trail, for events as the service makes them: every field of its type and within its
 * limit, no details, nothing that JSON has to escape. Such an event is encoded at once, without the frozen
 * copy that the gate makes of it. Everything else takes the gate: this never repairs and never refuses.
 *
 * Promised, and held by a property test: where this gives a text, the gate and the encoder give the same.
 * Every field is read once, so what was checked is what is encoded.
 */
import type { AuditEvent } from "./event.ts";
import { TEXT_LIMITS } from "./event.ts";

/** What the encoder would escape, and lone surrogates among it. */
const NEEDS_ESCAPE = /["\\\p{Cc}\ud800-\udfff]/u;
const DECIMAL = /^\d{1,39}$/;
const FIELDS: ReadonlySet<string> = new Set(
  "at tenant key leaseId action allowed reason reasonCode holder fence purpose traceId outcome".split(" "),
);

/** The event's part of a line, or null when the gate has to look at it. */
export function encodePlainEvent(event: AuditEvent): string | null {
  if (typeof event !== "object" || event === null) return null;
  for (const field of Object.keys(event)) if (!FIELDS.has(field)) return null;
  const { at, tenant, key, leaseId, action, allowed, reason, reasonCode } = event;
  const { holder, fence, purpose, traceId, outcome, detail } = event;
  const isPlain =
    detail === undefined &&
    isCount(at) &&
    isCount(reasonCode) &&
    typeof allowed === "boolean" &&
    isShort(tenant, TEXT_LIMITS.tenant) &&
    isShort(key, TEXT_LIMITS.key) &&
    isShort(leaseId, TEXT_LIMITS.leaseId) &&
    isShort(action, TEXT_LIMITS.action) &&
    action !== "" &&
    isShort(reason, TEXT_LIMITS.reason) &&
    reason !== "" &&
    isShort(traceId, TEXT_LIMITS.traceId) &&
    (outcome === "applied" || outcome === "refused" || outcome === "unknown" || outcome === "none") &&
    (holder === undefined || isShort(holder, TEXT_LIMITS.holder)) &&
    (purpose === undefined || isShort(purpose, TEXT_LIMITS.purpose)) &&
    (fence === undefined || (typeof fence === "string" && DECIMAL.test(fence)));
  if (!isPlain) return null;
  // In one look, with spaces between: two halves of a surrogate pair must not meet at a seam.
  if (NEEDS_ESCAPE.test(`${tenant} ${key} ${leaseId} ${action} ${reason} ${holder} ${purpose} ${traceId}`)) {
    return null;
  }
  const held = holder === undefined ? "" : `,"holder":"${holder}"`;
  const fenced = fence === undefined ? "" : `,"fence":"${fence}"`;
  const meant = purpose === undefined ? "" : `,"purpose":"${purpose}"`;
  return `"at":${at},"tenant":"${tenant}","key":"${key}","leaseId":"${leaseId}","action":"${action}","allowed":${allowed},"reason":"${reason}","reasonCode":${reasonCode}${held}${fenced}${meant},"traceId":"${traceId}","outcome":"${outcome}"`;
}

function isShort(value: unknown, limit: number): boolean {
  return typeof value === "string" && value.length <= limit;
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
