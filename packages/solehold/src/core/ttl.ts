/** For how long a command asks, and until when a record then lasts. */
import type { AcquireCommand, RenewCommand } from "./command.ts";
import type { StoreInstant } from "./instant.ts";
import type { LeasePolicy } from "./policy.ts";
import type { LeaseRecord } from "./record.ts";

/** A renewal that names no ttl asks for its lease's own, kept within the bounds of the policy. */
export function wantedTtlMs(
  command: AcquireCommand | RenewCommand,
  record: LeaseRecord | null,
  { minTtlMs, maxTtlMs, defaultTtlMs }: LeasePolicy,
): number {
  if (command.ttlMs !== undefined) return command.ttlMs;
  return record === null ? defaultTtlMs : Math.min(maxTtlMs, Math.max(minTtlMs, record.ttlMs));
}

/** No belief in this lease lasts longer, even if the store's clock was set back since it was written. */
export function promisedUntil(old: LeaseRecord, now: StoreInstant): number {
  return Math.min(old.expiresAtMs, now.stampMs + old.ttlMs);
}

/**
 * Until when a lease lasts that is extended, or replaced by its own holder: now + ttl; it never adds, and a break stands.
 *
 * "keep-longest": if it asks for less than the holder was promised before and its reply is lost, the holder still believes
 * the older promise, so the record keeps the longer. "set": the shorter one is written.
 */
export function extendedUntil(
  ttlMs: number,
  old: LeaseRecord,
  now: StoreInstant,
  { shorten }: LeasePolicy,
): number {
  const wanted = now.stampMs + ttlMs;
  const bounded = old.breakAtMs === null ? wanted : Math.min(wanted, old.breakAtMs);
  return shorten === "set" ? bounded : Math.max(bounded, promisedUntil(old, now));
}

/**
 * The ttl in the record says for how long after a write, at most, anybody may believe. Where promises are kept it is the
 * longest of the grant: a shorter one would let the next renewal or an observer cut the promise.
 */
export function recordedTtlMs(ttlMs: number, old: LeaseRecord, { shorten }: LeasePolicy): number {
  return shorten === "set" ? ttlMs : Math.max(ttlMs, old.ttlMs);
}
