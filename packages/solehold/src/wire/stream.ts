/**
 * What travels over the stream: documented in docs/stream.md. A client sends one operation or an array of them; the
 * server sends arrays, and each answer names the operation it belongs to.
 */
import type { WatchEvent } from "./watch-event.ts";

export type MessageId = string | number;

export interface Envelope {
  readonly ok: true;
  readonly id: MessageId;
  readonly op: string;
  readonly traceparent: string | undefined;
  /** With the three fields above; all the others are the body of the operation. */
  readonly message: object;
}

export type EnvelopeReading =
  | Envelope
  | { readonly ok: false; readonly id: MessageId | null; readonly field: string; readonly message: string };

export type ServerMessage =
  | { readonly id: MessageId | null; readonly status: number; readonly body: unknown }
  | { readonly watch: MessageId; readonly event: WatchEvent }
  | { readonly notice: "draining" };

const LONGEST_ID = 64;

/** One operation, with the body's fields beside its id and name. */
export function encodeOperation(id: number, op: string, body: object): string {
  const fields = JSON.stringify(body).slice(1);
  return `{"id":${id},"op":"${op}"${fields === "}" ? "" : ","}${fields}`;
}

/** One message of operations or answers that were encoded before. */
export function joinMessages(encoded: readonly string[]): string {
  return `[${encoded.join(",")}]`;
}

/** One message or many; null when it is not JSON. */
export function parseMessages(text: string): readonly unknown[] | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : [parsed];
  } catch {
    return null;
  }
}

export function readEnvelope(value: unknown): EnvelopeReading {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { ok: false, id: null, field: "message", message: "must be an object with id and op" };
  }
  const { id, op, traceparent } = value as Readonly<Record<string, unknown>>;
  if (!isMessageId(id)) {
    const message = `must be a whole number, or 1 to ${LONGEST_ID} characters, that names this message`;
    return { ok: false, id: null, field: "id", message };
  }
  if (typeof op !== "string")
    return { ok: false, id, field: "op", message: "must be the name of an operation" };
  if (traceparent !== undefined && typeof traceparent !== "string") {
    return { ok: false, id, field: "traceparent", message: "must be a string" };
  }
  return { ok: true, id, op, traceparent, message: value };
}

/** The message without its envelope. */
export function bodyOfMessage(message: object): object {
  const {
    id: _id,
    op: _op,
    traceparent: _traceparent,
    ...body
  } = message as Readonly<Record<string, unknown>>;
  return body;
}

function isMessageId(value: unknown): value is MessageId {
  if (typeof value === "number") return Number.isSafeInteger(value);
  return typeof value === "string" && value.length > 0 && value.length <= LONGEST_ID;
}
