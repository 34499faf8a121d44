/** A changed key on its way to watchers: in a notification, and in the answer to a poll. */
import { encodeRecord, type LeaseKey } from "../../core/index.ts";
import { ABSENT, type StoredRecord, type StoreEvent } from "../../store/index.ts";
import { storedFromText } from "../support/stored-text.ts";

export interface Change {
  readonly key: LeaseKey;
  /** Null when it does not say what is there now. */
  readonly stored: StoredRecord | null;
}

/** The server takes payloads of less than 8000 bytes. */
const MAX_PAYLOAD_BYTES = 7_900;

/** Instead of a change: too many to name. */
export const EVERYTHING_CHANGED = "*";

/** `[tenant, name]`, and if it fits the version and the value; for a deleted key two nulls. */
export function payloadOf({ key: { tenant, name }, stored }: Change): string {
  const short = JSON.stringify([tenant, name]);
  if (stored === null || stored.kind === "corrupt") return short;
  const isFound = stored.kind === "found";
  const full = JSON.stringify([
    tenant,
    name,
    isFound ? stored.version : null,
    isFound ? encodeRecord(stored.record) : null,
  ]);
  return Buffer.byteLength(full) < MAX_PAYLOAD_BYTES ? full : short;
}

/** Null for what is no change: anybody who knows the channel may send anything. */
export function eventFrom(payload: string): StoreEvent | null {
  if (payload === EVERYTHING_CHANGED) return { kind: "reset" };
  try {
    const parts: unknown = JSON.parse(payload);
    return Array.isArray(parts) ? changedEvent(parts) : null;
  } catch {
    return null;
  }
}

export function changedEvent(parts: readonly unknown[]): StoreEvent | null {
  const [tenant, name, version, value] = parts;
  if (typeof tenant !== "string" || typeof name !== "string") return null;
  const key = { tenant, name };
  if (parts.length === 2) return { kind: "changed", key, stored: null };
  if (typeof version !== "string" || typeof value !== "string")
    return { kind: "changed", key, stored: ABSENT };
  return { kind: "changed", key, stored: storedFromText(key, value, version) };
}
