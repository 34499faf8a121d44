/**
 * One operation of a stream that has no answer yet: to the rest of the server the call it serves, and somebody
 * who may go away. One object for all of that, since there is one for every command.
 */
import type { Principal } from "../access/principal.ts";
import type { Call, Connection } from "../call.ts";
import type { MessageId } from "./messages.ts";

/** The connection that it came by. */
export interface Line {
  readonly isClosed: boolean;
  /** How the client wants to be answered. */
  readonly answers: "full" | "brief";
}

export class StreamOperation implements Call, Connection {
  readonly id: MessageId;
  readonly principal: Principal;
  readonly traceId: string;
  readonly receivedMs: number;
  readonly #line: Line;
  /** Few ever wait: most are answered before anybody asks to be told. */
  #listeners: Set<() => void> | null = null;
  #cancelled = false;

  constructor(line: Line, id: MessageId, principal: Principal, traceId: string, receivedMs: number) {
    this.#line = line;
    this.id = id;
    this.principal = principal;
    this.traceId = traceId;
    this.receivedMs = receivedMs;
  }

  get answers(): "full" | "brief" {
    return this.#line.answers;
  }

  get connection(): Connection {
    return this;
  }

  isGone(): boolean {
    return this.#cancelled || this.#line.isClosed;
  }

  isCancelled(): boolean {
    return this.#cancelled;
  }

  onGone(listener: () => void): () => void {
    const listeners = this.#listeners ?? new Set();
    this.#listeners = listeners.add(listener);
    return () => void listeners.delete(listener);
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
