/**
 * A changed key on its way to watchers, as the payload of a notification.
 *
 * Writers announce by NOTIFY behind the write, on the same connection, and only while somebody listens. Not inside the
 * write: PostgreSQL lets transactions that notify commit only one at a time, each with its wait for the disk, so that
 * many processes would write at a quarter of their speed. The price: the announcement of a process that is killed right
 * after its write is missing.
 */
import { encodeRecord, type LeaseKey, type LeaseRecord } from "../../core/index.ts";
import { ABSENT, type StoreEvent, storedFromText } from "../../store/index.ts";

/** The server takes payloads of less than 8000 bytes. */
const MAX_PAYLOAD_BYTES = 7_900;

/** Instead of a change: something may have changed, but it is not certain what. */
export const ANYTHING_CHANGED = "*";

/** `[tenant, name, version, value]`, both null after a delete; only `[tenant, name]` if that does not fit. */
export function payloadOf(
  { tenant, name }: LeaseKey,
  version: string | null,
  record: LeaseRecord | null,
): string {
  const value = record === null ? null : encodeRecord(record);
  const payload = JSON.stringify([tenant, name, version, value]);
  return Buffer.byteLength(payload) < MAX_PAYLOAD_BYTES ? payload : JSON.stringify([tenant, name]);
}

/** None for what is no change: any client that knows the channel may send anything. */
export function eventsFrom(payload: string): readonly StoreEvent[] {
  if (payload === ANYTHING_CHANGED) return [{ kind: "reset" }];
  const change = parsed(payload);
  const [tenant, name, version, value] = change;
  if (typeof tenant !== "string" || typeof name !== "string") return [];
  const key = { tenant, name };
  if (change.length === 2) return [{ kind: "changed", key, stored: null }];
  const isThere = typeof version === "string" && typeof value === "string";
  return [{ kind: "changed", key, stored: isThere ? storedFromText(key, value, version) : ABSENT }];
}

function parsed(payload: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(payload);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
