/** One operation of a stream that has no answer yet: the call that the rest of the server sees, and its connection. */
import type { Envelope, MessageId } from "solehold/internal";
import type { Call, Connection } from "../access/call.ts";
import type { Principal } from "../access/principal.ts";
import type { RequestSpan } from "../telemetry/spans.ts";

/** The connection that it came by. */
export interface ConnectionState {
  readonly principal: Principal;
  readonly address: string;
  readonly isClosed: boolean;
}

export class StreamOperation implements Call, Connection {
  readonly id: MessageId;
  readonly op: string;
  /** For the meters. */
  readonly route: string;
  readonly traceId: string;
  readonly span: RequestSpan;
  readonly receivedMs: number;
  /** It may wait for its turn, and so take long. */
  readonly mayWait: boolean;
  waitedMs = 0;
  readonly #state: ConnectionState;
  /** Null for most: they are answered before anybody registers. */
  #listeners: Set<() => void> | null = null;
  #cancelled = false;
  /** Called when the answer has left; null where nothing waits for that. */
  whenTaken: (() => void) | null = null;

  constructor(
    state: ConnectionState,
    { id, op, message }: Envelope,
    route: string,
    traceId: string,
    span: RequestSpan,
    receivedMs: number,
  ) {
    this.#state = state;
    this.id = id;
    this.op = op;
    this.route = route;
    this.traceId = traceId;
    this.span = span;
    this.receivedMs = receivedMs;
    this.mayWait = op === "acquire" && "waitMs" in message && message.waitMs !== 0;
  }

  get principal(): Principal {
    return this.#state.principal;
  }

  get address(): string {
    return this.#state.address;
  }

  get connection(): Connection {
    return this;
  }

  isGone(): boolean {
    return this.#cancelled || this.#state.isClosed;
  }

  isCancelled(): boolean {
    return this.#cancelled;
  }

  onGone(listener: () => void): () => void {
    const listeners = this.#listeners ?? new Set();
    this.#listeners = listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  onTaken(listener: () => void): void {
    this.whenTaken = listener;
  }

  /** The connection was closed. */
  disconnect(): void {
    for (const listener of [...(this.#listeners ?? [])]) listener();
  }

  /** The client does not want the answer any more. */
  cancel(): void {
    this.#cancelled = true;
    this.disconnect();
  }
}
