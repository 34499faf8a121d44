/** Durations as people write them: a number is milliseconds; strings carry their unit. */

import { describeType } from "./identifiers.ts";
import { MAX_DURATION_MS } from "./policy.ts";

export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const WRITTEN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** The duration in whole milliseconds, or null when it is not one (negative, fractional, too long, NaN). */
export function parseDuration(value: unknown): number | null {
  const ms = typeof value === "string" ? parseWritten(value) : value;
  if (typeof ms !== "number" || !Number.isSafeInteger(ms) || ms < 0 || ms > MAX_DURATION_MS) return null;
  return ms;
}

function parseWritten(text: string): number {
  const match = WRITTEN.exec(text);
  if (match === null) return Number.NaN;
  const [, amount = "", unit = ""] = match;
  const exact = Number(amount) * (UNIT_MS[unit] ?? Number.NaN);
  const whole = Math.round(exact);
  // 1.1 s is 1100 ms although 1.1 * 1000 is not exactly that in doubles. More than that is a fraction.
  return Math.abs(exact - whole) <= whole * 4 * Number.EPSILON ? whole : exact;
}

/** As `parseDuration`, but throws an error that names the field, the value and the fix. */
export function durationMs(field: string, value: unknown, minMs: number): number {
  const ms = parseDuration(value);
  if (ms !== null && ms >= minMs) return ms;
  const shown =
    typeof value === "number"
      ? String(value)
      : typeof value === "string"
        ? JSON.stringify(value)
        : describeType(value);
  throw new RangeError(
    `${field} must be at least ${minMs} ms and at most 365 days, as milliseconds (30000) or with a unit ("30s", "5m", "250ms"); got ${shown}`,
  );
}
