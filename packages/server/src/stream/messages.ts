/**
 * What travels over the stream: documented in docs/stream.md. A client sends one message or an array of
 * them; the server sends arrays, and each answer names the message it belongs to.
 */
import { Type } from "typebox";
import { Tenant } from "../protocol/schemas/fields.ts";
import type { WatchEvent } from "../watch/watch-hub.ts";

export type MessageId = string | number;

export interface Envelope {
  readonly ok: true;
  readonly id: MessageId;
  readonly op: string;
  readonly traceparent: string | undefined;
  /** With the three fields above; all the others are the body of the operation. */
  readonly message: object;
}

export type ServerMessage =
  | { readonly id: MessageId | null; readonly status: number; readonly body: unknown }
  | { readonly watch: MessageId; readonly event: WatchEvent }
  | { readonly notice: "draining" };

export const WatchBody = Type.Object(
  {
    tenant: Type.Optional(Tenant),
    prefix: Type.Optional(Type.String()),
    after: Type.Optional(Type.String({ description: "The token of the last event seen." })),
  },
  { additionalProperties: false },
);

/** `unwatch` ends a watch, `cancel` a wait: both name the message that began it. */
export const TargetBody = Type.Object(
  { target: Type.Union([Type.String(), Type.Integer()]) },
  { additionalProperties: false },
);

export const EmptyBody = Type.Object({}, { additionalProperties: false });

const LONGEST_ID = 64;

export type EnvelopeReading =
  | Envelope
  | { readonly ok: false; readonly id: MessageId | null; readonly field: string; readonly message: string };

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

/** Operations that concern the connection itself. */
export const CONTROL_OPERATIONS: ReadonlySet<string> = new Set(["watch", "unwatch", "cancel", "ping"]);

/** One message or many; null when it is not JSON. */
export function parseMessages(data: Buffer): readonly unknown[] | null {
  try {
    const parsed: unknown = JSON.parse(data.toString("utf8"));
    return Array.isArray(parsed) ? parsed : [parsed];
  } catch {
    return null;
  }
}
