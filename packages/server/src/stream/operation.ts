/** One operation of a stream that has no answer yet: the call that the rest of the server sees. */
import type { Envelope, MessageId } from "solehold/internal";
import type { Call } from "../access/call.ts";
import type { Principal } from "../access/principal.ts";
import { MeteredRequest, type Meters } from "../telemetry/metered-request.ts";

/** The connection that it came by. */
export interface ConnectionState {
  readonly principal: Principal;
  readonly address: string;
  readonly isClosed: boolean;
}

export class StreamOperation extends MeteredRequest implements Call {
  readonly id: MessageId;
  readonly op: string;
  /** It may wait for its turn, and so take long. */
  readonly mayWait: boolean;
  readonly #state: ConnectionState;
  /** Null for most: they are answered before anybody registers. */
  #listeners: Set<() => void> | null = null;
  #cancelled = false;
  /** Called when the answer has left; null where nothing waits for that. */
  whenTaken: (() => void) | null = null;

  constructor(
    meters: Meters,
    route: string,
    { id, op, message, traceparent }: Envelope,
    receivedMs: number,
    state: ConnectionState,
  ) {
    super(meters, route, traceparent, receivedMs);
    this.#state = state;
    this.id = id;
    this.op = op;
    this.mayWait = op === "acquire" && "waitMs" in message && message.waitMs !== 0;
  }

  get principal(): Principal {
    return this.#state.principal;
  }

  get address(): string {
    return this.#state.address;
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
