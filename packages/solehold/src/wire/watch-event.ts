/** Changes of leases on their way to a watcher: in a message of the stream, or as a server-sent event. */
import type { QueueLength } from "../executor/index.ts";
import { ABSENT, type StoreEvent } from "../store/index.ts";
import { fieldsOf, textIn } from "./fields.ts";
import { decodeLeaseRecord, type WireLease } from "./lease.ts";
import { encodeSse, type SseEvent } from "./sse.ts";

export type WatchKind = "changed" | "expired" | "deleted" | "reset";

export interface WatchEvent {
  readonly kind: WatchKind;
  /** Where to go on after this event. */
  readonly token: string;
  readonly tenant?: string;
  readonly name?: string;
  /** Absent after a reset, for a deleted record, and for one that cannot be read. */
  readonly lease?: WireLease;
}

export function encodeWatchEvent({ kind, token, ...data }: WatchEvent): string {
  return encodeSse({ event: kind, id: token, data: JSON.stringify(data) });
}

export function encodeQueueEvent({ key: { tenant, name }, waiting }: QueueLength): string {
  return encodeSse({ event: "queue", data: JSON.stringify({ tenant, name, waiting }) });
}

/** Null for an event about anything else, and for one that cannot be read: the next one of this queue says it again. */
export function decodeQueueEvent({ event, data }: SseEvent): QueueLength | null {
  if (event !== "queue") return null;
  try {
    const fields = fieldsOf(JSON.parse(data));
    const key = { tenant: textIn(fields, "tenant"), name: textIn(fields, "name") };
    return { key, waiting: Number(fields.waiting) };
  } catch {
    return null;
  }
}

/**
 * What the event says about the store. Null for events about the watch itself. An event that cannot be read counts as
 * missing. A server does not tell a record's version.
 */
export function decodeWatchEvent({ event, data }: SseEvent): StoreEvent | null {
  if (event === "reset") return { kind: "reset" };
  if (event === "queue") return null;
  try {
    const fields = fieldsOf(JSON.parse(data));
    if (fields.tenant === undefined) return null;
    const key = { tenant: textIn(fields, "tenant"), name: textIn(fields, "name") };
    if (event === "deleted") return { kind: "changed", key, stored: ABSENT };
    if ((fields.lease ?? null) === null) return { kind: "changed", key, stored: null };
    return {
      kind: "changed",
      key,
      stored: { kind: "found", record: decodeLeaseRecord(fields.lease), version: "" },
    };
  } catch {
    return { kind: "reset" };
  }
}
