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
    isPlainText(tenant, TEXT_LIMITS.tenant) &&
    isPlainText(key, TEXT_LIMITS.key) &&
    isPlainText(leaseId, TEXT_LIMITS.leaseId) &&
    isPlainText(action, TEXT_LIMITS.action) &&
    action !== "" &&
    isPlainText(reason, TEXT_LIMITS.reason) &&
    reason !== "" &&
    isPlainText(traceId, TEXT_LIMITS.traceId) &&
    (outcome === "applied" || outcome === "refused" || outcome === "unknown" || outcome === "none") &&
    (holder === undefined || isPlainText(holder, TEXT_LIMITS.holder)) &&
    (purpose === undefined || isPlainText(purpose, TEXT_LIMITS.purpose)) &&
    (fence === undefined || (typeof fence === "string" && DECIMAL.test(fence)));
  if (!isPlain) return null;
  const held = holder === undefined ? "" : `,"holder":"${holder}"`;
  const fenced = fence === undefined ? "" : `,"fence":"${fence}"`;
  const meant = purpose === undefined ? "" : `,"purpose":"${purpose}"`;
  return `"at":${at},"tenant":"${tenant}","key":"${key}","leaseId":"${leaseId}","action":"${action}","allowed":${allowed},"reason":"${reason}","reasonCode":${reasonCode}${held}${fenced}${meant},"traceId":"${traceId}","outcome":"${outcome}"`;
}

/** Without quotes, backslashes, control characters and surrogates: what the encoder would have to look at. */
function isPlainText(value: unknown, limit: number): boolean {
  if (typeof value !== "string" || value.length > limit) return false;
  for (let index = 0; index < value.length; index += 1) {
    const unit = value.charCodeAt(index);
    if (unit < 0x20 || unit === 0x22 || unit === 0x5c) return false;
    if ((unit >= 0x7f && unit <= 0x9f) || (unit >= 0xd800 && unit <= 0xdfff)) return false;
  }
  return true;
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
