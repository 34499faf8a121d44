/**
 * What travels over the stream: documented in docs/stream.md. A client sends one message or an array of
 * them; the server sends arrays, and each answer names the message it belongs to.
 */
import { type TObject, type TSchema, Type } from "typebox";
import { Compile } from "typebox/compile";
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
  | { readonly notice: "draining" }
  /** Encoded already. */
  | string;

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

const BRIEF_LENGTHS: ReadonlyMap<unknown, number> = new Map([
  ["acquire", 9],
  ["renew", 7],
  ["release", 6],
]);

/**
 * A brief request (docs/stream.md) as it would have come in full: what is wrong with it is found there. Whatever else
 * is a list stays one, and is refused.
 */
export function inFull(message: unknown): unknown {
  if (!Array.isArray(message) || message.length !== BRIEF_LENGTHS.get(message[1])) return message;
  const { 0: id, 1: op, 2: tenant, 3: name, 4: holder, 5: token, 6: ttlMs } = message as readonly unknown[];
  if (op === "release") return { id, op, tenant, name, holder, token };
  if (op === "renew") return { id, op, tenant, name, holder, token, ttlMs };
  return { id, op, tenant, name, holder, token, ttlMs, purpose: message[7], waitMs: message[8] };
}

/** The message without its envelope: a copy, for what is rare or refused. */
export function bodyOfMessage(message: object): object {
  const {
    id: _id,
    op: _op,
    traceparent: _traceparent,
    ...body
  } = message as Readonly<Record<string, unknown>>;
  return body;
}

const ANY = Type.Optional(Type.Unknown());

/** Whether a whole message, envelope and all, has a body of that shape: one look, and no copy. */
export function messageCheckOf(body: TSchema): (message: object) => boolean {
  const { properties } = body as TObject;
  const envelope = { id: ANY, op: ANY, traceparent: ANY };
  const validator = Compile(Type.Object({ ...properties, ...envelope }, { additionalProperties: false }));
  return (message) => validator.Check(message);
}

function isMessageId(value: unknown): value is MessageId {
  if (typeof value === "number") return Number.isSafeInteger(value);
  return typeof value === "string" && value.length > 0 && value.length <= LONGEST_ID;
}

/** Operations that concern the connection itself. */
export const CONTROL_OPERATIONS: ReadonlySet<string> = new Set([
  "watch",
  "unwatch",
  "cancel",
  "ping",
  "brief",
]);

/** One message or many; null when it is not JSON. */
export function parseMessages(data: Buffer): readonly unknown[] | null {
  try {
    const parsed: unknown = JSON.parse(data.toString("utf8"));
    return Array.isArray(parsed) ? parsed : [parsed];
  } catch {
    return null;
  }
}
