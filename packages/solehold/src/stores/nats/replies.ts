/** What JetStream answers, read: acknowledgements, stored messages, and refusals with their code. */
import type { NatsMessage } from "./client.ts";

/** The code of a request that reached nobody. */
export const NO_RESPONDERS = 503;
const NOT_FOUND = 404;
export const WRONG_LAST_SEQUENCE = 10_071;
export const STREAM_NOT_FOUND = 10_059;
const MESSAGE_NOT_FOUND = 10_037;

/** JetStream said no, and did nothing. */
export class RefusedRequest extends Error {
  override readonly name = "RefusedRequest";
  readonly code: number;

  constructor(code: number, description: string) {
    super(description);
    this.code = code;
  }
}

/** The last message of a key. */
export interface KeptMessage {
  readonly sequence: number;
  /** When the server stored it, in microseconds of its clock. */
  readonly atMicros: bigint;
  /** Whether it marks that the key was deleted. */
  readonly isMarker: boolean;
  readonly data: Buffer;
}

interface ApiAnswer {
  readonly error?: { readonly code: number; readonly err_code?: number; readonly description?: string };
}

/** The JSON of an answer; throws a RefusedRequest. */
export function answerOf(message: NatsMessage): unknown {
  if (message.data.length === 0) {
    const code = message.headers?.code ?? 0;
    throw new RefusedRequest(code, code === NO_RESPONDERS ? "no responders" : `status ${code}`);
  }
  const answer = JSON.parse(bufferOf(message.data).toString()) as ApiAnswer;
  if (answer.error === undefined) return answer;
  const { code, err_code: errorCode = code, description = "" } = answer.error;
  throw new RefusedRequest(errorCode, description.split("\n", 1)[0] ?? "");
}

/** The sequence that a published message got. */
export function sequenceOf(message: NatsMessage): number {
  const { seq } = answerOf(message) as { readonly seq?: unknown };
  if (typeof seq !== "number" || seq < 1)
    throw new RefusedRequest(0, "an acknowledgement without a sequence");
  return seq;
}

/** The answer to a direct get; null when there is no message. */
export function keptFromDirect(message: NatsMessage): KeptMessage | null {
  const { headers } = message;
  if (headers === undefined) throw new RefusedRequest(0, "a stored message without headers");
  if (headers.code === NOT_FOUND) return null;
  if (headers.code !== 0) throw new RefusedRequest(headers.code, `status ${headers.code}`);
  return {
    sequence: Number(headers.get("Nats-Sequence")),
    get atMicros() {
      return microsOf(headers.get("Nats-Time-Stamp"));
    },
    isMarker: message.data.length === 0 && headers.get("KV-Operation") !== "",
    data: bufferOf(message.data),
  };
}

/** The answer of the stream's leader to a get; null when there is no message. */
export function keptFromLeader(message: NatsMessage): KeptMessage | null {
  let answer: { readonly message: Readonly<Record<string, unknown>> };
  try {
    answer = answerOf(message) as typeof answer;
  } catch (error) {
    if (error instanceof RefusedRequest && error.code === MESSAGE_NOT_FOUND) return null;
    throw error;
  }
  const { seq, time, hdrs = "", data = "" } = answer.message;
  const headers = Buffer.from(String(hdrs), "base64").toString();
  return {
    sequence: Number(seq),
    get atMicros() {
      return microsOf(String(time));
    },
    isMarker: data === "" && headers.includes("\r\nKV-Operation:"),
    data: Buffer.from(String(data), "base64"),
  };
}

export function bufferOf(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

/** RFC 3339 with up to nine digits after the point, of which a Date keeps three. */
function microsOf(time: string): bigint {
  const match = /^(.*T\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(time);
  const seconds = Date.parse(`${match?.[1]}${match?.[3]}`);
  if (Number.isNaN(seconds)) throw new RefusedRequest(0, `a message without a time: '${time}'`);
  return BigInt(seconds) * 1_000n + BigInt((match?.[2] ?? "").padEnd(6, "0").slice(0, 6));
}
